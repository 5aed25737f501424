package fakeprovider

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// connect opens a WebSocket to the fake providers.
func connect(t *testing.T, path string) *websocket.Conn {
	t.Helper()
	s, err := Start(t.Context(), "127.0.0.1:0", Script{})
	if err != nil {
		t.Fatal(err)
	}
	conn, resp, err := websocket.DefaultDialer.Dial("ws://"+s.Addr()+path, http.Header{"Cartesia-Version": {"2026-03-01"}})
	if err != nil {
		t.Fatalf("%s: %v, %v", path, err, resp)
	}
	_ = resp.Body.Close() // ignore the rest of the handshake
	t.Cleanup(func() { _ = conn.Close(); _ = s.Close() })
	return conn
}

func send(t *testing.T, conn *websocket.Conn, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
}

// until reads messages until last returns true for one. It returns all messages that it read.
func until(t *testing.T, conn *websocket.Conn, last func(m map[string]any) bool) (all []map[string]any) {
	t.Helper()
	for {
		var m map[string]any
		if err := conn.ReadJSON(&m); err != nil {
			t.Fatalf("after %v: %v", all, err)
		}
		if all = append(all, m); last(m) {
			return all
		}
	}
}

// TestElevenLabsContexts checks that two contexts of a connection get separate speech, and that one context too many
// is refused.
func TestElevenLabsContexts(t *testing.T) {
	conn := connect(t, "/v1/text-to-speech/v/multi-stream-input?output_format=pcm_16000")
	send(t, conn, `{"text":" ","context_id":"a","voice_settings":{}}`, `{"text":" ","context_id":"b"}`,
		`{"text":"one ","context_id":"a"}`, `{"text":"two ","context_id":"b","flush":true}`,
		`{"context_id":"a","close_context":true}`, `{"context_id":"b","close_context":true}`)
	finals, sound := map[any]bool{}, map[any]int{}
	until(t, conn, func(m map[string]any) bool {
		if m["isFinal"] == true {
			finals[m["contextId"]] = true
		}
		if audio, ok := m["audio"].(string); ok && m["normalizedAlignment"] != nil {
			sound[m["contextId"]] += len(audio)
		}
		return len(finals) == 2
	})
	if !finals["a"] || !finals["b"] || sound["a"] == 0 || sound["b"] == 0 {
		t.Errorf("ended %v with sound %v", finals, sound)
	}
	for _, id := range []string{"c", "d", "e", "f", "g", "h"} {
		send(t, conn, `{"text":" ","context_id":"`+id+`"}`)
	}
	until(t, conn, func(m map[string]any) bool { return m["error"] == "max_active_conversations" })
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("then %v", err)
	}
}

// TestVendorShapes checks messages that Parley's clients do not need but other clients do.
func TestVendorShapes(t *testing.T) {
	conn := connect(t, "/tts/websocket")
	const format = `"output_format":{"container":"raw","encoding":"pcm_f32le","sample_rate":16000}`
	send(t, conn, `{"context_id":"a","transcript":"one ","continue":true,`+format+`}`, `{"context_id":"a","transcript":"","continue":false,`+format+`}`)
	types := ""
	for _, m := range until(t, conn, func(m map[string]any) bool { return m["type"] == "done" }) {
		types += m["type"].(string) + " "
	}
	if types != "timestamps chunk flush_done done " {
		t.Errorf("Cartesia: %s", types)
	}
	send(t, conn, `{"context_id":"b","transcript":"one ","output_format":{"encoding":"mp3"}}`)
	if m := until(t, conn, func(map[string]any) bool { return true })[0]; m["type"] != "error" || m["status_code"] != 400.0 || m["error_code"] == nil {
		t.Errorf("Cartesia refuses with %v", m)
	}

	conn = connect(t, "/v1/speak?model=aura-2-thalia-en")
	send(t, conn, `{"type":"Speak","text":"one"}`, `{"type":"Flush"}`, `{"type":"Close"}`)
	var err error
	for err == nil {
		_, _, err = conn.ReadMessage()
	}
	if !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("Deepgram ends with %v", err)
	}

	conn = connect(t, "/v1/text-to-speech/v/stream-input?output_format=ulaw_8000")
	send(t, conn, `{"text":"one "}`, `{"text":""}`)
	until(t, conn, func(m map[string]any) bool { return m["isFinal"] == true })
	if _, _, err = conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("ElevenLabs ends with %v", err)
	}
}

// TestUnsupportedFormat checks that the error for an unsupported format names the format.
func TestUnsupportedFormat(t *testing.T) {
	w := httptest.NewRecorder()
	(&Server{}).speak(w, httptest.NewRequest(http.MethodGet, "/", nil))
	b, _ := io.ReadAll(w.Body)
	if w.Code != http.StatusBadRequest || !strings.Contains(string(b), "mp3_44100_128 cannot be made") {
		t.Errorf("%d %s", w.Code, b)
	}
}
