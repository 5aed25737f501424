package target

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/sip/siptest"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]address{
		"sip:100@192.0.2.1":                      {"100", "sip:192.0.2.1", "192.0.2.1"},
		"sip:echo@127.0.0.1:5080;transport=tcp":  {"echo", "sip:127.0.0.1:5080;transport=tcp", "127.0.0.1"},
		"sip:+12025550100@pbx.example.test:5061": {"+12025550100", "sip:pbx.example.test:5061", "pbx.example.test"},
		"sip:a@[2001:db8::1]:5060":               {"a", "sip:[2001:db8::1]:5060", "2001:db8::1"},
	} {
		if got, err := parse(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "100@192.0.2.1", "sip:192.0.2.1", "sip:@192.0.2.1", "sip:100@", "sip:100@:5060"} {
		if got, err := parse(text); err == nil || !strings.Contains(err.Error(), "accepted are sip:user@host") {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

// A syntheticCall is a call whose lines and audio a test places at given times in ms.
type syntheticCall struct {
	call
	pcm []int16
}

func at(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

func newCall(seconds int) *syntheticCall {
	return &syntheticCall{call: call{id: "target-0"}, pcm: make([]int16, seconds*rate)}
}

// says appends a line of the caller and returns its end.
func (t *syntheticCall) says(from int, text string) int {
	pcm := speech(text)
	s := callee.Spoken{Line: len(t.lines)}
	for n := range (len(pcm) + 159) / 160 {
		s.Left = append(s.Left, at(from+20*(n+1)))
	}
	t.lines, t.record.Said = append(t.lines, line{text, pcm}), append(t.record.Said, s)
	return from + len(pcm)/8
}

func (t *syntheticCall) hears(from int, text string) int {
	pcm := speech(text)
	copy(t.pcm[from*8:], pcm)
	return from + len(pcm)/8
}

func speech(text string) []int16 {
	pcm, _ := tone.Encode(rate, text)
	return pcm
}

func (t *syntheticCall) turns() []Turn {
	h := &t.record.Heard
	h.Rate, h.PCM = rate, t.pcm
	for n := range len(t.pcm) / 160 {
		h.At = append(h.At, at(20*n))
	}
	t.record.Ended = at(len(t.pcm) / 8)
	return t.judge()
}

func about(v *float64, want, within float64) bool { return v != nil && math.Abs(*v-want) <= within }

func TestAnswers(t *testing.T) {
	x := newCall(16)
	end := x.says(500, "are you open")
	end = x.hears(end+700, "yes of course")
	end = x.hears(end+400, "come to the shop")
	end = x.says(end+500, "and tomorrow")
	x.says(end+3000, "hello")
	turns := x.turns()
	v := turns[0]
	if !about(v.Wire, 700, 21) || !about(v.Ear, 740, 21) || v.Dead || v.Over || v.Overlap != 0 || !about(&v.Silence, 400, 21) ||
		v.Again != 0 || v.Doubled != 0 || strings.Join(v.Words, " ") != "yes of course come to the shop" || v.Back != nil {
		t.Errorf("answer after 700 ms: got %+v", v)
	}
	if v = turns[1]; !v.Dead || v.Ear != nil || v.Spoke != 0 {
		t.Errorf("no answer: got %+v", v)
	}
}

func TestRepeatedAnswer(t *testing.T) {
	x := newCall(10)
	end := x.says(500, "are you open")
	end = x.hears(end+300, "yes of course")
	x.hears(end+400, "yes of course")
	if v := x.turns()[0]; v.Again != 1 || v.Doubled != 3 {
		t.Errorf("repeated answer: got %+v", v)
	}
}

func TestInterruption(t *testing.T) {
	x := newCall(10)
	end := x.says(500, "are you open on sunday")
	x.hears(end-300, "yes of course")
	if v := x.turns()[0]; !v.Over || v.Dead || v.Ear != nil || !about(&v.Overlap, 260, 21) { // audio plays 40 ms after its arrival
		t.Errorf("interrupted for 300 ms: got %+v", v)
	}
	x = newCall(10)
	end = x.says(500, "are you open on sunday")
	said := speech("let me see when that is possible")
	copy(x.pcm[(end+300)*8:], said[:8*1200])
	x.says(end+1200, "wait please")
	if v := x.turns()[1]; !v.Into || !about(v.Stop, 340, 40) || v.Over {
		t.Errorf("stop after 300 ms: got %+v", v)
	}
}

// TestNaturalEnd checks that an answer that ends by itself during an interruption is no stop.
func TestNaturalEnd(t *testing.T) {
	x := newCall(20)
	long := "let me see when that is possible for you"
	end := x.hears(x.says(500, "are you open on sunday")+300, long)
	end = x.says(end+500, "are you open on monday")
	x.hears(end+300, long)
	end = x.says(end+900, "wait please no not that one i meant another one of them") // the answer continues to its end
	end = x.says(end+1500, "are you open on friday")
	copy(x.pcm[(end+300)*8:], speech(long)[:8*900]) // the answer stops
	x.says(end+800, "wait please")
	all := turns(x.turns())
	all.dropNaturalEnds()
	if v := all[2]; !v.Into || v.Stop != nil {
		t.Errorf("an answer that ended by itself: %+v", v)
	}
	if v := all[4]; !v.Into || v.Stop == nil {
		t.Errorf("an answer that stopped: %+v", v)
	}
}

func TestEcho(t *testing.T) {
	x := newCall(10)
	x.says(500, "are you open on sunday")
	x.hears(620, "are you open on sunday")
	if v := x.turns()[0]; !about(v.Back, 120, 2) || *v.BackAt < 0.99 || !v.Over {
		t.Errorf("echo after 120 ms: got %+v", v)
	}
}

func options(target string, lines int) Options {
	return Options{Target: target, From: "12025550100", Calls: 1, Lines: lines, Speech: Speech{Seed: corpus.Development}}
}

// TestAnsweringSystem checks the measurement of a system that answers after 300 ms of silence.
// Its second answer has the same words twice.
func TestAnsweringSystem(t *testing.T) {
	t.Parallel()
	c := &siptest.Carrier{Listen: "127.0.0.1:0", Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: http.StatusOK, Talk: siptest.Person{
			Greeting: "hello", Lines: []string{"yes of course", "come at ten come at ten"}, ThinkTime: 300 * time.Millisecond,
		}.Talk}
	}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	o := options("sip:100@"+c.Addr().String(), 2)
	calls, late, err := hold(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	judged := calls[0].judge()
	if len(judged) != 2 || len(late) == 0 {
		t.Fatalf("%+v", judged)
	}
	for i, want := range []string{"yes of course", "come at ten come at ten"} {
		v := judged[i]
		if v.Ear == nil || *v.Ear < 300 || *v.Ear > 900 || v.Over || v.Back != nil || strings.Join(v.Words, " ") != want || v.Doubled != 3*i {
			t.Errorf("line %d: got %+v", i, v)
		}
	}
	var f result.File
	report(o, calls, late, &f)
	for name, n := range map[string]int{"ear_ms": 2, "stop_ms": 0, "dead_turns": 2, "doubled_words": 2, "unfinished_calls": 1} {
		if m, ok := f.Find(name, 0); !ok || m.N() != n {
			t.Errorf("%s: got %+v", name, m)
		}
	}
	if len(f.Turns) != 2 || f.Turns[0].Figures["ear_ms"] < 300 || !slices.Contains(f.Turns[1].Marks, "words doubled") {
		t.Errorf("%+v", f.Turns)
	}
}

func TestUnknownNumber(t *testing.T) {
	c := &siptest.Carrier{Listen: "127.0.0.1:0", Answer: func(siptest.Invite) siptest.Script { return siptest.Script{Status: 404} }}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := Run(t.Context(), options("sip:100@"+c.Addr().String(), 1), &result.File{}); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
}

// port returns a free port below the kernel's ephemeral range. The kernel never chooses such a
// port for another process.
func port(t *testing.T) int {
	t.Helper()
	for range 100 {
		p := 20000 + 2*rand.IntN(5000)
		if c, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", fmt.Sprintf("127.0.0.1:%d", p)); err == nil {
			_ = c.Close()
			return p
		}
	}
	t.Fatal("no free port")
	return 0
}

// taken reports whether a process listens on a port, and waits up to 3 s for it.
func taken(t *testing.T, port int) bool {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 150 {
		c, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return true
		}
		_ = c.Close()
		<-tick.C
	}
	return false
}

// program starts an external program and stops it at the end of the test.
func program(t *testing.T, out io.Writer, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (apt-get install %s)", name, map[string]string{"sipp": "sip-tester"}[name]+strings.TrimPrefix(name, "sipp"))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), out, out
	if err = cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
}

// echoes measures a system that returns the audio, and checks that the delay is between least and most ms.
func echoes(t *testing.T, port int, least, most float64) {
	t.Helper()
	o := options(fmt.Sprintf("sip:echo@127.0.0.1:%d", port), 2)
	o.First = true
	calls, _, err := hold(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	judged := calls[0].judge()
	for _, v := range judged {
		if v.Back == nil || *v.Back < least || *v.Back > most || !v.Over || v.Dead || v.Overlap < 1000 {
			t.Errorf("%+v", v)
		}
	}
	if len(judged) != 2 {
		t.Errorf("got %d turns", len(judged))
	}
}

// TestSIPp checks the measurement with sipp, which returns each packet on arrival.
func TestSIPp(t *testing.T) {
	t.Parallel()
	for range 3 { // sipp exits if one of its other ports is in use
		sip := port(t)
		program(t, t.Output(), "sipp", "-sn", "uas", "-rtp_echo", "-nostdin", "-i", "127.0.0.1", "-p", fmt.Sprint(sip), "-mp", fmt.Sprint(port(t)))
		if taken(t, sip) {
			echoes(t, sip, 15, 250)
			return
		}
	}
	t.Error("sipp does not listen")
}

// TestOrder checks the measurement of calls that a command orders. sipp dials and returns each packet on arrival.
func TestOrder(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("sipp")
	if err != nil {
		t.Skip("sipp is not installed (apt-get install sip-tester)")
	}
	o := options("", 2)
	o.First, o.Listen = true, fmt.Sprintf("127.0.0.1:%d", port(t))
	o.Order = fmt.Sprintf("cd %s && exec %s -sn uac -rtp_echo -bg -i 127.0.0.1 -p %d -mp %d -m 1 -d 60000 -s $CALL %s",
		t.TempDir(), path, port(t), port(t), o.Listen)
	o.Order = "(" + o.Order + ") || [ $? = 99 ]" // sipp -bg exits with 99
	calls, _, err := hold(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	judged := calls[0].judge()
	for _, v := range judged {
		if v.Back == nil || *v.Back < 15 || *v.Back > 250 || v.Dead {
			t.Errorf("%+v", v)
		}
	}
	if len(judged) != 2 {
		t.Errorf("got %d turns", len(judged))
	}
}

func TestOrderErrors(t *testing.T) {
	for name, c := range map[string]struct{ order, listen, want string }{
		"failing command": {"echo no such agent >&2; exit 3", fmt.Sprintf("127.0.0.1:%d", port(t)), "call 0: the command of --order failed: exit status 3: no such agent"},
		"any address":     {"true", "0.0.0.0:5090", `listen address "0.0.0.0:5090": accepted is`},
		"no port":         {"true", "127.0.0.1", `listen address "127.0.0.1": accepted is`},
	} {
		o := options("", 1)
		o.Order, o.Listen = c.order, c.listen
		if _, _, err := hold(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestBaresip checks the measurement with baresip, whose microphone is connected to its
// loudspeaker. The delay includes the jitter buffer of baresip.
func TestBaresip(t *testing.T) {
	t.Parallel()
	modules, _ := filepath.Glob("/usr/lib/*/baresip/modules")
	modules = append(modules, "/usr/lib/baresip/modules")
	sip, dir := port(t), t.TempDir()
	config := fmt.Sprintf(`sip_listen 127.0.0.1:%d
module_path %s
module g711.so
module aubridge.so
module_tmp account.so
module_app menu.so
audio_player aubridge,loop
audio_source aubridge,loop
audio_alert aubridge,alert
`, sip, modules[0])
	account := fmt.Sprintf("<sip:echo@127.0.0.1:%d>;regint=0;answermode=auto\n", sip)
	for name, text := range map[string]string{"config": config, "accounts": account} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, w := io.Pipe()
	program(t, w, "baresip", "-f", dir)
	t.Cleanup(func() { _ = w.Close() })
	lines := bufio.NewScanner(r)
	for lines.Scan() && !strings.Contains(lines.Text(), "is ready") {
		t.Log(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // until w is closed
	echoes(t, sip, 30, 500)
}

// TestSpeech checks that real speech gives the same results as tone words.
func TestSpeech(t *testing.T) {
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		t.Skip("espeak-ng is not installed (apt-get install espeak-ng)")
	}
	all, err := Speech{Voices: true}.lines(t.Context(), 1, 2)
	if err != nil || len(all) != 2 || len(all[0].pcm) < rate || all[0].text == all[1].text {
		t.Errorf("got %d lines, %v", len(all), err)
	}
	if _, err := (Speech{Files: []string{"/no/such/file"}}).lines(t.Context(), 0, 1); err == nil {
		t.Error("invalid file: got no error")
	}
}
