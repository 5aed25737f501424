package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/webrtc/webrtctest"
)

// TestSoakWeb keeps many concurrent web calls busy with questions and prints their CPU time per second. The providers
// run in another process.
func TestSoakWeb(t *testing.T) {
	calls, _ := strconv.Atoi(os.Getenv("PARLEYTEST_WEB_CALLS"))
	if calls == 0 {
		t.Skip("PARLEYTEST_WEB_CALLS sets the number of calls")
	}
	s := &soak{t: t}
	s.prepare("127.0.0.1:9", "http://127.0.0.1:9")
	port := freePort(t)
	fakes, _, _ := child(t, "parley", "bench", "providers", "--asr=127.0.0.1:"+port)
	fakes.Stdout = os.Stderr
	s.environ = append(s.environ, "PARLEY_FAKE_URL=127.0.0.1:"+port)
	if err := fakes.Start(); err != nil {
		t.Fatal(err)
	}
	server := s.serve()
	defer func() {
		for _, p := range []*exec.Cmd{server, fakes} {
			_ = p.Process.Signal(syscall.SIGTERM)
			_ = p.Wait()
		}
	}()
	s.waitReady()
	b := openBrowsers(t)
	var all []*webrtctest.Browser
	var frames, answers atomic.Int64
	var work sync.WaitGroup
	began := time.Now()
	slowest := time.Duration(0)
	for range calls {
		at := time.Now()
		var w webTicket
		post(t, s.api, "/v1/calls/web", map[string]any{"agent_id": "demo"}, &w)
		br := b.open(t, w)
		join(t, br)
		slowest = max(slowest, time.Since(at))
		all = append(all, br)
		work.Go(func() { askRepeatedly(br, &frames, &answers) })
	}
	t.Logf("%d calls joined in %v, the slowest in %v", calls, time.Since(began), slowest)
	const window = 20 * time.Second
	<-time.After(3 * time.Second)
	cpu, heard := cpuTime(t, server.Process.Pid), frames.Load()
	began = time.Now()
	<-time.After(window)
	took := time.Since(began)
	cpu, heard = cpuTime(t, server.Process.Pid)-cpu, frames.Load()-heard
	seconds := float64(calls) * took.Seconds()
	var lost, packets, over int64
	for _, br := range all {
		q := br.Leg.Quality()
		lost, packets = lost+q.Received.Lost, packets+q.Received.Packets
		if br.Leg.Cause() != "" {
			over++
		}
	}
	t.Logf("%.2f ms CPU per call and second; %.2f %% of the frames received, %d of %d packets lost; %d answers received; %d calls ended",
		float64(cpu.Microseconds())/1000/seconds, 100*float64(heard)/(seconds*50), lost, packets, answers.Load(), over)
	for _, br := range all {
		br.Close()
	}
	work.Wait()
	if over > 0 || answers.Load() < int64(calls) || float64(heard) < 0.95*seconds*50 {
		t.Error("calls ended, answers are missing, or frames were lost")
	}
}

// askRepeatedly repeats a question and counts the received frames and the answers.
func askRepeatedly(br *webrtctest.Browser, frames, answers *atomic.Int64) {
	pcm, _ := tone.Encode(br.Leg.Rate(), "when do you open")
	f := make(media.Frame, media.FrameLen(br.Leg.Rate()))
	quiet := 0
	var say []int16
	var mu sync.Mutex
	br.Leg.Play(media.FeedFunc(func(f media.Frame, _ time.Time) {
		mu.Lock()
		defer mu.Unlock()
		n := copy(f, say)
		clear(f[n:])
		say = say[n:]
	}))
	for br.Leg.ReadFrame(f) == nil {
		frames.Add(1)
		if tone.Level(f) > -45 {
			if quiet > 50 {
				answers.Add(1)
			}
			quiet = 0
			continue
		}
		if quiet++; quiet == 100 {
			mu.Lock()
			say = pcm
			mu.Unlock()
		}
	}
}

func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}
