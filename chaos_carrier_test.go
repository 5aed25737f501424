package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
)

// chaosCallee is the scenario of a sipp process. It answers, hangs up after a time in milliseconds unless it gets a BYE,
// and logs what it gets. A line of its CSV file is the port for the audio of one call.
const chaosCallee = `<?xml version="1.0" encoding="ISO-8859-1" ?>
<scenario name="callee">
  <recv request="INVITE"><action>
    <ereg regexp="sip:[^;&gt;]*" search_in="hdr" header="Contact:" check_it="true" assign_to="1"/>
    <ereg regexp=".*" search_in="hdr" header="From:" check_it="true" assign_to="2"/>
    <ereg regexp=".*" search_in="hdr" header="To:" check_it="true" assign_to="3"/>
    <ereg regexp=".*" search_in="hdr" header="Via:" check_it="true" assign_to="4"/>
    <log message="INVITE [call_id] port=[field0] [$4] [$3]"/>
  </action></recv>
  <send><![CDATA[
SIP/2.0 180 Ringing
[last_Via:]
[last_From:]
[last_To:];tag=[pid]sipp[call_number]
[last_Call-ID:]
[last_CSeq:]
Contact: <sip:[local_ip]:[local_port];transport=[transport]>
Content-Length: 0

]]></send>
  <pause milliseconds="400"/>
  <send retrans="500"><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:];tag=[pid]sipp[call_number]
[last_Call-ID:]
[last_CSeq:]
Contact: <sip:[local_ip]:[local_port];transport=[transport]>
Content-Type: application/sdp
Content-Length: [len]

v=0
o=sipp 1 1 IN IP4 [local_ip]
s=-
c=IN IP4 [local_ip]
t=0 0
m=audio [field0] RTP/AVP 0
a=rtpmap:0 PCMU/8000

]]></send>
  <recv request="ACK"><action><log message="ACK [call_id]"/></action></recv>
  <recv request="BYE" timeout="%d" ontimeout="1"><action><log message="BYE [call_id]"/></action></recv>
  <send next="2"><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:]
[last_Call-ID:]
[last_CSeq:]
Content-Length: 0

]]></send>
  <label id="1"/>
  <nop><action><log message="HANGUP [call_id]"/></action></nop>
  <send retrans="500"><![CDATA[
BYE [$1] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From:[$3];tag=[pid]sipp[call_number]
To:[$2]
Call-ID: [call_id]
CSeq: 1 BYE
Max-Forwards: 70
Content-Length: 0

]]></send>
  <recv response="200" optional="true" next="2"/>
  <recv response="481" timeout="4000" ontimeout="2"/>
  <label id="2"/>
  <timewait milliseconds="100"/>
</scenario>
`

// chaosEvent is a line of the log of a carrier.
type chaosEvent struct {
	at         time.Time
	kind, call string // INVITE, ACK, BYE or HANGUP, and the Call-ID
	port, node int    // of an INVITE: port for the audio, and SIP port of the node
	number     string // of an INVITE
	hold       time.Duration
}

// chaosCarrier is a sipp process whose callees hang up after a time.
type chaosCarrier struct {
	addr string
	hold time.Duration
	done chan struct{} // closed when the log has been read
	stop func()

	mu     sync.Mutex
	events []chaosEvent
}

// startChaosCarrier starts a carrier. ports has the ports that its callees offer for audio, for one call each, in turns.
func startChaosCarrier(t *testing.T, hold time.Duration, ports []int) *chaosCarrier {
	t.Helper()
	path, err := exec.LookPath("sipp")
	if err != nil {
		t.Skip("sipp is not installed (apt-get install sip-tester)")
	}
	dir := t.TempDir()
	var csv strings.Builder
	csv.WriteString("SEQUENTIAL\n")
	for _, port := range ports {
		fmt.Fprintf(&csv, "%d\n", port)
	}
	scenario := fmt.Sprintf(chaosCallee, hold.Milliseconds())
	for name, text := range map[string]string{"callee.xml": scenario, "ports.csv": csv.String(), "log": ""} {
		if err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The log is a pipe, so that each line gets the time of its arrival.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	port := mediatest.FreePort(t)
	cmd := exec.CommandContext(t.Context(), path, "-sf", "callee.xml", "-inf", "ports.csv", "-i", "127.0.0.1", "-p", strconv.Itoa(port),
		"-mp", strconv.Itoa(mediatest.FreePort(t)), "-aa", "-nostdin", "-trace_logs", "-log_file", "/dev/fd/3", "-trace_err", "-error_file", "errors", "-l", "100000")
	cmd.Dir, cmd.ExtraFiles = dir, []*os.File{w}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	c := &chaosCarrier{addr: "127.0.0.1:" + strconv.Itoa(port), hold: hold, done: make(chan struct{})}
	c.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the process was killed
		<-c.done
	})
	t.Cleanup(c.stop)
	go c.read(r)
	return c
}

var chaosInvite = regexp.MustCompile(`^port=(\d+) +SIP/2.0/UDP 127\.0\.0\.1:(\d+);.*sip:\+?(\d+)@`)

func (c *chaosCarrier) read(log *os.File) {
	defer close(c.done)
	defer func() { _ = log.Close() }()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		id, rest, _ := strings.Cut(rest, " ")
		x := chaosEvent{at: time.Now(), kind: kind, call: id, hold: c.hold}
		if m := chaosInvite.FindStringSubmatch(rest); m != nil {
			x.port, _ = strconv.Atoi(m[1]) // digits
			x.node, _ = strconv.Atoi(m[2]) // digits
			x.number = m[3]
		} else if kind == "INVITE" {
			x.kind = "unreadable INVITE: " + lines.Text()
		}
		c.mu.Lock()
		c.events = append(c.events, x)
		c.mu.Unlock()
	}
}

// lateAudio is the time between two packets from which on the callee hears a gap.
const lateAudio = 200 * time.Millisecond

// chaosStream is the audio that a callee received in one call.
type chaosStream struct {
	port        int
	first, last time.Time
	gaps        []chaosGap
}

// chaosGap is a time without packets.
type chaosGap struct {
	from time.Time
	len  time.Duration
}

// chaosAudio receives the audio of the callees of all carriers, and sends speech to the other side of each call.
type chaosAudio struct {
	ports []int
	stop  func()

	mu      sync.Mutex
	streams []*chaosStream
}

func startChaosAudio(t *testing.T, n int) *chaosAudio {
	t.Helper()
	pcm, _ := tone.Encode(8000, "when do you open")
	pcm = append(pcm, make([]int16, 8*8000)...) // a line, and 8 s of silence
	speech := make([]byte, len(pcm)/160*160)
	codec.PCMU{}.Encode(speech, pcm[:len(speech)])
	a := &chaosAudio{}
	var wg sync.WaitGroup
	var conns []*net.UDPConn
	for range n {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		stampArrivals(t, conn)
		port := conn.LocalAddr().(*net.UDPAddr).Port //nolint:forcetypeassert // of a UDP socket
		a.ports = append(a.ports, port)
		wg.Go(func() { a.callee(conn, port, speech) })
	}
	a.stop = sync.OnceFunc(func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
		wg.Wait()
	})
	t.Cleanup(a.stop)
	return a
}

// callee receives the audio of one port until the connection is closed. It sends a packet for each that it receives.
func (a *chaosAudio) callee(conn *net.UDPConn, port int, speech []byte) {
	var s *chaosStream
	var ssrc string
	in, oob, out := make([]byte, 2048), make([]byte, 128), make([]byte, 12+160)
	out[0] = 0x80
	for seq := 0; ; {
		n, oobn, _, from, err := conn.ReadMsgUDP(in, oob)
		if err != nil {
			return
		}
		if n < 12 || in[1]&0x7f >= 64 && in[1]&0x7f < 96 {
			continue // RTCP
		}
		now := arrival(oob[:oobn])
		a.mu.Lock()
		if id := string(in[8:12]); s == nil || id != ssrc {
			s, ssrc, seq = &chaosStream{port: port, first: now, last: now}, id, 0
			a.streams = append(a.streams, s)
			copy(out[8:12], in[8:12]) // any SSRC of the call
			out[11]++
		}
		if now.Sub(s.last) > lateAudio {
			s.gaps = append(s.gaps, chaosGap{s.last, now.Sub(s.last)})
		}
		s.last = now
		a.mu.Unlock()
		out[2], out[3] = byte(seq>>8), byte(seq)
		at := seq * 160
		out[4], out[5], out[6], out[7] = byte(at>>24), byte(at>>16), byte(at>>8), byte(at)
		copy(out[12:], speech[at%len(speech):][:160])
		seq++
		_, _ = conn.WriteToUDP(out, from) // a lost packet
	}
}

// stampArrivals makes the kernel record when each packet arrives, so that a delay of this process does not count as a
// gap.
func stampArrivals(t *testing.T, conn *net.UDPConn) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err == nil {
		err = errors.Join(err, raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// arrival returns the kernel's time of a packet.
func arrival(oob []byte) time.Time {
	if all, err := syscall.ParseSocketControlMessage(oob); err == nil && len(all) == 1 && len(all[0].Data) == 16 {
		d := all[0].Data
		return time.Unix(int64(binary.NativeEndian.Uint64(d)), int64(binary.NativeEndian.Uint64(d[8:])))
	}
	return time.Now()
}
