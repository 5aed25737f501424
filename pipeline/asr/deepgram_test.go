package asr

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// listen opens a recognition with a fake provider that follows script.
func listen(t *testing.T, script fakeprovider.Script, rate int) (rec pipeline.Recognition, done func()) {
	t.Helper()
	n := fakeprovider.NewNet()
	fakes := fakeprovider.Serve(n, script)
	rec, err := Deepgram{URL: "ws://fake/v1/listen", Key: "k", Dial: n.Dial}.Recognize(t.Context(), pipeline.Stream{Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	return rec, func() {
		if err := fakes.Close(); err != nil {
			t.Error(err)
		}
	}
}

// say sends text in real time, followed by a short silence.
func say(rec pipeline.Recognition, text string) {
	pcm, _ := tone.Encode(rec.Rate(), text)
	n := media.FrameLen(rec.Rate())
	pcm = append(pcm, make([]int16, 5*n)...)
	for ; len(pcm) >= n; pcm = pcm[n:] {
		<-time.After(media.FrameTime)
		if rec.WriteFrame(pcm[:n]) != nil {
			return // Close reports the error
		}
	}
}

func TestRecognize(t *testing.T) {
	for _, rate := range []int{8000, 16000} {
		synctest.Test(t, func(t *testing.T) {
			rec, done := listen(t, fakeprovider.Script{}, rate)
			defer done()
			go func() {
				say(rec, "hello there")
				if err := rec.Finalize(); err != nil {
					t.Error(err)
				}
			}()
			var last pipeline.Result
			partials := 0
			for r := range rec.Results() {
				if last = r; r.Final {
					break
				}
				partials++
			}
			if last.Text != "hello there" || !last.Finalized || len(last.Words) != 2 || partials != 2 {
				t.Errorf("at %d Hz: %+v after %d partials", rate, last, partials)
			}
			for range 2 {
				if err := rec.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
		})
	}
}

// TestSlowNetwork checks that a stuck provider does not block WriteFrame, and that the stream ends
// when the queue is full.
func TestSlowNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, done := listen(t, fakeprovider.Script{Fault: func(fakeprovider.Provider, int) fakeprovider.Fault { return fakeprovider.None }}, 8000)
		defer done()
		f := make(media.Frame, 160)
		full := false
		for range 10 * queueFrames { // the bubble's clock does not advance in this loop
			full = full || rec.WriteFrame(f) != nil
		}
		if !full {
			t.Fatal("got no error from a full queue")
		}
		if err := rec.Close(); err == nil || !strings.Contains(err.Error(), "too slowly") {
			t.Errorf("close: %v", err)
		}
	})
}

// TestStuckConnection checks that a provider that stops reading does not delay Close.
func TestStuckConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := fakeprovider.NewNet()
		released := make(chan struct{})
		server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			<-released // the provider never reads
			_ = conn.Close()
		})}
		go func() { _ = server.Serve(n) }()
		rec, err := Deepgram{URL: "ws://fake/v1/listen", Dial: n.Dial}.Recognize(t.Context(), pipeline.Stream{Rate: 8000})
		if err != nil {
			t.Fatal(err)
		}
		_ = rec.WriteFrame(make(media.Frame, 160))
		synctest.Wait() // the writer is stuck now
		began := time.Now()
		_ = rec.Close()
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("closing took %v", d)
		}
		close(released)
		_ = server.Close()
	})
}

// sizes is a transport that records the sizes of messages.
type sizes struct {
	mu   sync.Mutex
	all  []int
	done chan struct{}
}

func (s *sizes) send(m message, _ time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, len(m.body))
	return nil
}

func (s *sizes) receive() ([]byte, error) { <-s.done; return nil, io.EOF }
func (s *sizes) hurry(time.Time)          { close(s.done) }
func (s *sizes) close()                   {}

// TestBatch checks that audio is collected as SetBatch says. Once it is set to 0 or Finalize is called, no audio waits.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := &sizes{done: make(chan struct{})}
		s := start(protocol{name: "x", chunk: media.FrameTime, finalize: "!", bye: "bye"}, telephone, sent, nil)
		write := func(frames int) {
			for range frames {
				if err := s.WriteFrame(make(media.Frame, 160)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		}
		write(2)
		s.SetBatch(100 * time.Millisecond)
		write(13) // sends two messages of five frames; three frames wait
		s.SetBatch(0)
		write(2) // the first message also contains the three waiting frames
		s.SetBatch(40 * time.Millisecond)
		write(3) // sends a message of two frames; one frame waits
		if err := s.Finalize(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_ = s.Close()
		if want := []int{160, 160, 800, 800, 640, 160, 320, 160, 1, 3}; !slices.Equal(sent.all, want) {
			t.Errorf("sent %v, want %v", sent.all, want)
		}
	})
}

// TestLateWriter checks that audio is collected while the writer is late, so that all of it fits in the queue, and that
// no audio is lost.
func TestLateWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := &sizes{done: make(chan struct{})}
		s := start(protocol{name: "x", chunk: media.FrameTime, finalize: "!", bye: "bye"}, telephone, sent, nil)
		sent.mu.Lock() // blocks the writer
		for i := range queueFrames {
			if err := s.WriteFrame(make(media.Frame, 160)); err != nil {
				t.Fatalf("frame %d: %v", i, err)
			}
		}
		err := s.Finalize()
		sent.mu.Unlock()
		synctest.Wait()
		_ = s.Close()
		sum := 0
		for _, n := range sent.all {
			sum += n
		}
		if want := queueFrames*160 + len("!bye"); err != nil || sum != want {
			t.Errorf("sent %d bytes, want %d: %v", sum, want, err)
		}
	})
}

func TestWriteFrameAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, done := listen(t, fakeprovider.Script{}, 8000)
		defer done()
		f := make(media.Frame, 160)
		n := testing.AllocsPerRun(queueFrames/2, func() { _ = rec.WriteFrame(f) })
		_ = rec.Close()
		if n > 1 { // the writer allocates for its deadline
			t.Errorf("%v allocations a frame", n)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"type":"Results","is_final":true,"channel":{"alternatives":[{"transcript":"hi","words":[{"word":"hi"}]}]}}`))
	f.Add([]byte(`{"type":"TurnInfo","event":"EndOfTurn","transcript":"hi","words":[{"word":"hi"}],"end_of_turn_confidence":0.7}`))
	f.Add([]byte(`{"type":"Turn","turn_order":0,"end_of_turn":true,"transcript":"hi","words":[{"text":"hi","start":1,"end":2}]}`))
	f.Add([]byte(`{"type":"conversation.item.input_audio_transcription.delta","item_id":"x","delta":"hi"}`))
	f.Add([]byte(`{"type":"Error","description":"x"}`))
	f.Add([]byte(`{"tokens":[{"text":" hi","start_ms":1,"end_ms":2,"is_final":true},{"text":"<fin>","is_final":true}],"final_audio_proc_ms":3}`))
	f.Add([]byte("Path:speech.phrase\r\nX-Turn-Start:5\r\n\r\n" + `{"RecognitionStatus":"Success","Offset":1,"NBest":[{"Display":"hi","Words":[{"Word":"hi","Duration":9}]}]}`))
	f.Add([]byte("Path:turn.end\r\nX-Turn-End:5\r\n\r\n{}"))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		turns, items, tokens := assemblyTurns{last: -1}, openAIItems{}, sonioxTokens{}
		for _, parse := range []func([]byte) (update, error){parseDeepgram, parseFlux, turns.parse, items.parse, tokens.parse, parseAzure} {
			l := tracker{}
			l.addRequest(time.Second, 0)
			h, err := parse(b)
			if err != nil {
				continue
			}
			if out := l.onUpdate(h); len(out) > 2 {
				t.Errorf("%d results of one message", len(out))
			}
		}
	})
}
