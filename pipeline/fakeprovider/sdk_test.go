package fakeprovider

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/pem"
	"math"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/tone"
)

// TestSoakSDKs runs the vendors' own SDKs against the fake providers. Each script checks the results of its SDK. The
// test itself decodes the speech that the scripts received.
func TestSoakSDKs(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("installs npm packages; set PARLEYTEST_SOAK=1 to run it")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/sdk")); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	write(t, dir, "sentence.pcm", littleEndian(sentencePCM(sdkRate)))
	write(t, dir, "sentence.wav", sentenceWAV())
	ulaw := make([]byte, len(sentencePCM(8000)))
	codec.PCMU{}.Encode(ulaw, sentencePCM(8000))
	write(t, dir, "sentence.ulaw", ulaw)
	env := append(os.Environ(), startForSDKs(t, dir)...)
	for _, c := range []struct {
		name string // name of the script
		said int    // number of files with speech that the script writes
	}{
		{"deepgram", 2}, {"openai", 2}, {"assemblyai", 0}, {"cartesia", 2}, {"elevenlabs", 4}, {"azure", 2}, {"google", 0}, {"anthropic", 0}, {"soniox", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := exec.CommandContext(t.Context(), "node", c.name+".mjs")
			script.Dir, script.Env = dir, env
			out, err := script.CombinedOutput()
			if t.Logf("%s", out); err != nil {
				t.Fatal(err)
			}
			checkSaid(t, dir, c.name, c.said)
		})
	}
}

// startForSDKs serves the providers twice, with TLS and without. It returns the environment of the scripts.
func startForSDKs(t *testing.T, dir string) []string {
	t.Helper()
	script := Typical()
	script.Call = func(messages []Message) (name, arguments string) {
		if last := messages[len(messages)-1]; strings.HasPrefix(last.Content, "look up ") {
			return "look_up", `{"order":"` + strings.TrimPrefix(last.Content, "look up ") + `"}`
		}
		return "", ""
	}
	plain, err := Start(t.Context(), "127.0.0.1:0", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() })
	example := httptest.NewTLSServer(nil) // its certificate is valid for 127.0.0.1
	defer example.Close()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secure := Serve(tls.NewListener(l, &tls.Config{Certificates: example.TLS.Certificates, MinVersion: tls.VersionTLS12}), script)
	t.Cleanup(func() { _ = secure.Close() })
	write(t, dir, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: example.Certificate().Raw}))
	return []string{"FAKE_ADDR=" + plain.Addr(), "FAKE_TLS_ADDR=" + secure.Addr(), "NODE_EXTRA_CA_CERTS=" + filepath.Join(dir, "ca.pem")}
}

func write(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

const sdkRate = 16000 // sample rate in Hz

// sentencePCM returns a sentence for recognizers, followed by 1.5 s of silence.
func sentencePCM(rate int) []int16 {
	pcm, _ := tone.Encode(rate, "hello there friend")
	return append(pcm, make([]int16, rate*3/2)...)
}

func sentenceWAV() []byte {
	sound := littleEndian(sentencePCM(sdkRate))
	b := wavHeader()
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8+len(sound)))
	binary.LittleEndian.PutUint32(b[wavRateAt:], sdkRate)
	binary.LittleEndian.PutUint32(b[wavRateAt+4:], 2*sdkRate)
	binary.LittleEndian.PutUint32(b[wavHead-4:], uint32(len(sound)))
	return append(b, sound...)
}

// checkSaid decodes the speech that a script received, in files named NAME.RATE.ENCODING.said.
func checkSaid(t *testing.T, dir, script string, want int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, script+"*.said"))
	if err != nil || len(files) != want {
		t.Fatalf("%d files, %v; want %d", len(files), err, want)
	}
	for _, file := range files {
		sound, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Split(filepath.Base(file), ".")
		rate, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		pcm := decodeSound(sound, fields[2])
		var words []string
		for _, w := range tone.NewDecoder(rate).Decode(append(pcm, make([]int16, rate)...)) {
			words = append(words, w.Text)
		}
		if got := strings.Join(words, " "); got != "one two three" {
			t.Errorf("%s said %q; want %q", fields[0], got, "one two three")
		}
	}
}

func decodeSound(b []byte, encoding string) (pcm []int16) {
	switch encoding {
	case "mulaw":
		pcm = make([]int16, len(b))
		codec.PCMU{}.Decode(pcm, b)
	case "f32":
		for ; len(b) >= 4; b = b[4:] {
			pcm = append(pcm, int16(math.Float32frombits(binary.LittleEndian.Uint32(b))*(1<<15)))
		}
	default:
		for ; len(b) >= 2; b = b[2:] {
			pcm = append(pcm, int16(binary.LittleEndian.Uint16(b)))
		}
	}
	return pcm
}
