package sip

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/siptest"
)

type baresip struct {
	port int // port for UDP and TCP; TLS uses the next one
	out  *output
	ctrl net.Conn
	read *bufio.Reader
}

type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.wrote <- struct{}{}:
	default:
	}
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) wait(t *testing.T, text string) {
	t.Helper()
	for limit := shortContext(t); !strings.Contains(o.String(), text); {
		select {
		case <-o.wrote:
		case <-limit.Done():
			t.Fatalf("no %q in\n%s", text, o)
		}
	}
}

const baresipConfig = `poll_method epoll
sip_listen 127.0.0.1:%d
sip_certificate %s
call_local_timeout 120
call_max_calls 4
net_interface 127.0.0.1
audio_player aufile,%s
audio_alert aufile,%[3]s
audio_source aufile,%s
rtp_ports %d-%d
module_path /usr/lib/baresip/modules
module g711.so
module g722.so
module aufile.so
module srtp.so
module_tmp uuid.so
module_tmp account.so
module_app menu.so
module_app ctrl_tcp.so
ctrl_tcp_listen 127.0.0.1:%d
`

func writeWAV(rate int, pcm []int16) string {
	b := []byte("RIFF????WAVEfmt ")
	b = binary.LittleEndian.AppendUint32(b, 16)
	for _, n := range []uint16{1, 1, uint16(rate), 0, uint16(2 * rate), 0, 2, 16} {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	b = binary.LittleEndian.AppendUint32(append(b, "data"...), uint32(2*len(pcm)))
	for _, v := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return string(b)
}

// newBaresip starts a baresip that answers automatically. account adds account parameters.
func newBaresip(t *testing.T, account string, rate int) (*baresip, *x509.CertPool) {
	t.Helper()
	path, err := exec.LookPath("baresip")
	if err != nil {
		t.Skip("baresip is not installed (apt-get install baresip-core)")
	}
	dir := t.TempDir()
	cert, roots := certificate(t, "127.0.0.1")
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	both := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})...)
	b := &baresip{port: mediatest.FreePort(t), out: &output{wrote: make(chan struct{}, 1)}}
	control, rtp := mediatest.FreePort(t), mediatest.FreePort(t)
	for name, text := range map[string]string{
		"cert.pem": string(both),
		"config":   fmt.Sprintf(baresipConfig, b.port, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "received.wav"), filepath.Join(dir, "sent.wav"), rtp, rtp+40, control),
		"sent.wav": writeWAV(rate, tone.Sine(rate, 60*rate, 440, 0.25)),
		"accounts": fmt.Sprintf("<sip:parley@127.0.0.1:%d>;regint=0;answermode=auto%s\n", b.port, account),
	} {
		if err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, "-f", dir, "-v") // the cleanup stops the process
	cmd.Stdout, cmd.Stderr = b.out, b.out
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("baresip wrote\n%s", b.out)
		}
	})
	b.out.wait(t, "baresip is ready")
	if b.ctrl, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", control)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.ctrl.Close() })
	b.read = bufio.NewReader(b.ctrl)
	return b, roots
}

// command runs a command and waits for its response.
func (b *baresip) command(t *testing.T, name string) {
	t.Helper()
	message, err := json.Marshal(map[string]string{"command": name, "token": name})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(b.ctrl, "%d:%s,", len(message), message); err != nil {
		t.Fatal(err)
	}
	for { // responses are netstrings, with events between them
		length, err := b.read.ReadString(':')
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSuffix(length, ":"))
		if err != nil {
			t.Fatal(err)
		}
		text := make([]byte, n+1)
		if _, err := io.ReadFull(b.read, text); err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Response bool
			OK       bool
			Data     string
			Token    string
		}
		if err := json.Unmarshal(text[:n], &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Response && answer.Token == name {
			if !answer.OK {
				t.Fatalf("%s: %s", name, answer.Data)
			}
			return
		}
	}
}

func (b *baresip) target(l *env, transport string) media.Target {
	target := l.target()
	target.To = "parley"
	port := b.port
	if transport == "tls" {
		port++
	}
	target.Trunk.Proxy = fmt.Sprintf("sip:127.0.0.1:%d;transport=%s", port, transport)
	return target
}

// TestBaresip calls an independent phone over UDP, TCP and TLS, plain and
// encrypted, narrowband and wideband.
func TestBaresip(t *testing.T) {
	for name, row := range map[string]struct {
		transport  string
		account    string
		encryption media.Encryption
		codecs     []string
		rate       int
	}{
		"udp":              {"udp", "", media.Plain, nil, 8000},
		"tcp, G.722":       {"tcp", ";audio_codecs=G722/16000/1", media.Plain, []string{"G722"}, 16000},
		"udp, SRTP":        {"udp", ";mediaenc=srtp-mand", media.Encrypted, nil, 8000},
		"tls, SRTP, G.722": {"tls", ";mediaenc=srtp-mand;audio_codecs=G722/16000/1", media.Encrypted, nil, 16000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, roots := newBaresip(t, row.account, row.rate)
			l := newEnvWith(t, &UA{TLS: endpoint.TLS{Roots: roots}}, nil)
			target := b.target(l, row.transport)
			target.Trunk.Encryption, target.Trunk.Codecs = row.encryption, row.codecs
			call := l.call(t, target)
			if call.Rate() != row.rate {
				t.Errorf("rate %d", call.Rate())
			}
			call.Play(mediatest.Tone(700))
			checkTone(t, call, 50, 440) // the phone may begin late, but at least half of the frames were packets
			q := call.Quality()
			if q.Received.Packets < 20 || q.Received.Lost > 2 || q.Received.MOS < 3.5 {
				t.Errorf("quality %+v", q)
			}
			_ = call.Hangup(media.LocalHangup)
			b.out.wait(t, "session closed")
		})
	}
}

// TestBaresipHold puts the call on hold from either side, and checks that it continues and that
// audio resumes.
func TestBaresipHold(t *testing.T) {
	t.Parallel()
	b, _ := newBaresip(t, "", 8000)
	l := newEnvWith(t, &UA{MediaGap: 500 * time.Millisecond}, nil)
	call := l.call(t, b.target(l, "udp"))
	checkTone(t, call, 10, 440)
	reading := make(chan error, 1)
	stop := make(chan struct{})
	go func() { // a call must always be read
		f := make(media.Frame, media.FrameLen(call.Rate()))
		for {
			select {
			case <-stop:
				reading <- nil
				return
			default:
			}
			if err := call.ReadFrame(f); err != nil {
				reading <- err
				return
			}
		}
	}()
	if err := call.Hold(shortContext(t), true); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second) // twice the media timeout
	if call.Cause() != "" {
		t.Fatalf("ended on hold: %s", call.Cause())
	}
	if err := call.Hold(shortContext(t), false); err != nil {
		t.Fatal(err)
	}
	b.command(t, "hold")
	<-time.After(time.Second)
	if call.Cause() != "" {
		t.Fatalf("ended while it held us: %s", call.Cause())
	}
	b.command(t, "resume")
	close(stop)
	if err := <-reading; err != nil {
		t.Fatal(err)
	}
	checkTone(t, call, 10, 440)
	b.command(t, "hangup")
	if err := drain(call); !errors.Is(err, io.EOF) || call.Cause() != media.RemoteHangup {
		t.Errorf("ended with %q, %v", call.Cause(), err)
	}
}

// TestBaresipTransfer transfers the phone by REFER.
func TestBaresipTransfer(t *testing.T) {
	t.Parallel()
	l := newEnv(t, func(siptest.Invite) siptest.Script { return siptest.Script{Status: 200} })
	b, _ := newBaresip(t, fmt.Sprintf(";outbound=\"sip:%s\"", l.carrier.Addr()), 8000)
	call := l.call(t, b.target(l, "udp"))
	if err := call.Refer(shortContext(t), "12025550177"); err != nil {
		t.Fatal(err)
	}
	if call.Cause() != media.Transferred {
		t.Errorf("ended with %q", call.Cause())
	}
	l.waitEntry(t, func(e siptest.Entry) bool { return e.To == "12025550177" && e.Answered })
	b.command(t, "hangup")
}
