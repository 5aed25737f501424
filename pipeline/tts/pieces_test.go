package tts

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// overhear starts a fake provider that calls answer for each message. It returns the provider's
// network and the messages received so far.
func overhear(t *testing.T, answer func(conn *websocket.Conn, m map[string]any)) (n *fakeprovider.Net, got *[]map[string]any) {
	t.Helper()
	n, got = fakeprovider.NewNet(), new([]map[string]any)
	var mu sync.Mutex // guards got, because a pool opens several connections
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			var m map[string]any
			if conn.ReadJSON(&m) != nil {
				return
			}
			mu.Lock()
			*got = append(*got, m)
			mu.Unlock()
			answer(conn, m)
		}
	})}
	go func() { _ = srv.Serve(n) }()
	t.Cleanup(func() { _ = srv.Close() })
	return n, got
}

// TestPieces checks that a provider that speaks each piece at once receives whole clauses.
func TestPieces(t *testing.T) {
	pieces := []string{"Ihr", " Ter", "min ist um", " 3", ".", "30", " Uhr", ". ", "Passt", " das", "?"}
	for _, name := range []string{"elevenlabs", "cartesia"} {
		synctest.Test(t, func(t *testing.T) {
			n, got := overhear(t, func(conn *websocket.Conn, m map[string]any) {
				if m["text"] == "" {
					_ = conn.WriteJSON(map[string]any{"isFinal": true})
				}
				if m["continue"] == false {
					_ = conn.WriteJSON(map[string]any{"type": "done", "context_id": m["context_id"]})
				}
			})
			shared := &Cartesia{URL: "ws://fake/", Dial: n.Dial}
			voice := map[string]pipeline.Voice{"elevenlabs": ElevenLabs{URL: "ws://fake", Dial: n.Dial}, "cartesia": shared}[name]
			if _, _, err := speak(t.Context(), voice, 8000, pieces...); err != nil {
				t.Fatal(err)
			}
			_ = shared.Close()
			synctest.Wait()
			key := map[string]string{"elevenlabs": "text", "cartesia": "transcript"}[name]
			var sent []string
			for _, m := range *got {
				if s, ok := m[key].(string); ok && s != "" && s != " " {
					sent = append(sent, s)
				}
			}
			want := []string{"Ihr Termin ist um 3.30 Uhr. ", "Passt das?"}
			if name == "elevenlabs" {
				want[1] += " " // the client also adds a space to the last clause
			}
			if !slices.Equal(sent, want) {
				t.Errorf("%s is sent %q, want %q", name, sent, want)
			}
		})
	}
}

// TestContextEnds checks that a new context continues the text if Cartesia ends a context early,
// and that the word times continue.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, got := overhear(t, func(conn *websocket.Conn, m map[string]any) {
			id := m["context_id"]
			_ = conn.WriteJSON(map[string]any{"type": "chunk", "context_id": id, "data": make([]byte, 8000)})
			_ = conn.WriteJSON(map[string]any{"type": "timestamps", "context_id": id, "word_timestamps": map[string]any{
				"words": []string{"word"}, "start": []float64{0.5}, "end": []float64{0.9},
			}})
			_ = conn.WriteJSON(map[string]any{"type": "done", "context_id": id}) // the context ends although more text follows
		})
		c := &Cartesia{URL: "ws://fake/", Dial: n.Dial}
		sp, err := c.Open(t.Context(), pipeline.Style{Rate: 8000})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"Good morning to you. ", "And good evening. ", "And good night."} {
			if err := sp.Write(text); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if err := sp.Flush(); err != nil {
			t.Fatal(err)
		}
		var starts []time.Duration
		for s, err := range sp.Audio() {
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range s.Words {
				starts = append(starts, w.Start)
			}
		}
		_ = sp.Close()
		_ = c.Close()
		if want := []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, 2500 * time.Millisecond}; !slices.Equal(starts, want) {
			t.Errorf("words at %v, want %v", starts, want)
		}
		ids := map[any]bool{}
		for _, m := range *got {
			ids[m["context_id"]] = true
		}
		if len(ids) != 3 {
			b, _ := json.Marshal(*got)
			t.Errorf("sent %s", b)
		}
	})
}

// TestErrorWithoutContext checks an error that names no context. A server error ends every
// utterance; an invalid request ends an utterance only if it is alone on the connection.
func TestErrorWithoutContext(t *testing.T) {
	for _, tt := range []struct {
		frame     string
		alone, ok bool // whether the utterance is the only one, and whether it continues
	}{
		{`{"type":"error","status_code":500,"title":"Broken"}`, false, false},
		{`{"type":"error","status_code":400,"title":"No such voice"}`, true, false},
		{`{"type":"error","status_code":400,"title":"No such voice"}`, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, got := overhear(t, func(conn *websocket.Conn, m map[string]any) {
				if m["transcript"] == "One. " {
					_ = conn.WriteMessage(websocket.TextMessage, []byte(tt.frame))
				}
			})
			c := &Cartesia{URL: "ws://fake/", Dial: n.Dial}
			sp, err := c.Open(t.Context(), pipeline.Style{Rate: 8000})
			if err != nil {
				t.Fatal(err)
			}
			if !tt.alone {
				other, err := c.Open(t.Context(), pipeline.Style{Rate: 8000})
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
			}
			u := sp.(*cartesiaSynthesis)
			if err := u.send("One. ", true); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if u.mu.Lock(); (u.err == nil) != tt.ok || len(*got) != 1 {
				t.Errorf("%s, alone %v: %v", tt.frame, tt.alone, u.err)
			}
			u.mu.Unlock()
			_ = sp.Close()
			_ = c.Close()
		})
	}
}

// TestCloseDuringSpeech checks that Close lets an utterance in progress finish, and that a later utterance works: a
// call may still use the voice after its endpoint has been replaced. No connection stays open.
func TestCloseDuringSpeech(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := overhear(t, func(conn *websocket.Conn, m map[string]any) {
			if m["continue"] == false {
				_ = conn.WriteJSON(map[string]any{"type": "chunk", "context_id": m["context_id"], "data": "////////"})
				_ = conn.WriteJSON(map[string]any{"type": "done", "context_id": m["context_id"]})
			}
		})
		c := &Cartesia{URL: "ws://fake/", Dial: n.Dial}
		finish := func(sp pipeline.Synthesis) {
			t.Helper()
			heard := 0
			if err := sp.Flush(); err != nil {
				t.Error(err)
			}
			for s, err := range sp.Audio() {
				if heard += len(s.PCM); err != nil {
					t.Error(err)
				}
			}
			if heard == 0 {
				t.Error("heard nothing")
			}
			_ = sp.Close()
		}
		open := func() pipeline.Synthesis {
			t.Helper()
			sp, err := c.Open(t.Context(), pipeline.Style{Rate: 8000})
			if err == nil {
				err = sp.Write("Good morning to you. ")
			}
			if err != nil {
				t.Fatal(err)
			}
			return sp
		}
		first := open()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		finish(first)
		finish(open())
	}) // fails if a goroutine of a connection is left
}
