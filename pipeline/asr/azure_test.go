package asr

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// azureServer is the server's side of one connection.
type azureServer struct {
	conn  *websocket.Conn
	turns []string // request IDs of the turns
}

// next reads a message. It returns the number of the turn, the path and the bytes of audio.
func (a *azureServer) next(t *testing.T) (turn int, path string, audio int) {
	t.Helper()
	kind, b, err := a.conn.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	lines, body := b, []byte(nil)
	if kind == websocket.BinaryMessage {
		n := 2 + int(binary.BigEndian.Uint16(b))
		lines, body = b[2:n], b[n:]
	}
	head, _, err := parseAzureHeaders(append(slices.Clone(lines), "\r\n\r\n"...))
	if err != nil {
		t.Fatal(err)
	}
	id := head["x-requestid"]
	if len(id) != 32 || head["x-timestamp"] == "" {
		t.Errorf("headers %v", head)
	}
	if !slices.Contains(a.turns, id) {
		a.turns = append(a.turns, id)
	}
	if head["content-type"] == "audio/x-wav" {
		return slices.Index(a.turns, id), "wav", len(body)
	}
	return slices.Index(a.turns, id), head["path"], len(body)
}

func (a *azureServer) send(t *testing.T, turn int, path, body string) {
	t.Helper()
	m := "X-RequestId:" + strings.ToUpper(a.turns[turn]) + "\r\nPath:" + path + "\r\n\r\n" + body
	if err := a.conn.WriteMessage(websocket.TextMessage, []byte(m)); err != nil {
		t.Fatal(err)
	}
}

// TestAzureTurns checks the turns of one connection. Audio after a Finalize waits for turn.end. A
// second Finalize waits for the next turn. If the service ends a turn without a Finalize, the client
// sends the audio of that turn again.
func TestAzureTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := fakeprovider.NewNet()
		accepted := make(chan *websocket.Conn)
		server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
			if err != nil {
				t.Error(err)
			}
			accepted <- conn
		})}
		go func() { _ = server.Serve(n) }()
		defer func() { _ = server.Close() }()
		opened := make(chan pipeline.Recognition)
		go func() {
			rec, err := Azure{URL: "ws://fake", Key: "canary", Dial: n.Dial}.Recognize(t.Context(), pipeline.Stream{Rate: 8000})
			if err != nil {
				t.Error(err)
			}
			opened <- rec
		}()
		a := &azureServer{conn: <-accepted}
		rec := <-opened
		defer func() { _ = rec.Close() }()
		expect := func(turn int, path string, audio int) {
			t.Helper()
			if gotTurn, gotPath, gotAudio := a.next(t); gotTurn != turn || gotPath != path || path != "speech.config" && gotAudio != audio {
				t.Errorf("turn %d, %s, %d bytes; want turn %d, %s, %d bytes", gotTurn, gotPath, gotAudio, turn, path, audio)
			}
		}
		write := func(frames int) {
			for range frames {
				_ = rec.WriteFrame(make(media.Frame, 160))
			}
		}
		result := func() pipeline.Result {
			select {
			case r := <-rec.Results():
				return r
			case <-time.After(100 * ms):
				return pipeline.Result{Text: "none"}
			}
		}
		expect(0, "speech.config", 0)
		expect(0, "speech.context", 0)
		expect(0, "wav", 44)
		write(3)
		expect(0, "audio", 480)
		a.send(t, 0, "speech.hypothesis", `{"Text":"hi","Offset":100000,"Duration":200000}`)
		if r := result(); r.Text != "hi" || r.Start != 10*ms || r.End != 30*ms {
			t.Errorf("%+v", r)
		}
		_ = rec.Finalize()
		expect(0, "audio", 0)
		write(6)
		_ = rec.Finalize()
		write(3)
		synctest.Wait() // the audio waits for turn.end
		a.send(t, 0, "speech.phrase", `{"RecognitionStatus":"Success","Offset":100000,"Duration":200000,"NBest":[{"Display":"Hi.","Words":[{"Word":"hi","Offset":100000,"Duration":200000}]}]}`)
		if r := result(); r.Text != "Hi." || !r.Final || r.Finalized {
			t.Errorf("%+v", r)
		}
		a.send(t, 0, "turn.end", "{}")
		expect(1, "speech.context", 0)
		expect(1, "wav", 44)
		expect(1, "audio", 800)
		expect(1, "audio", 160)
		expect(1, "audio", 0)
		if r := result(); !r.Finalized || r.End != 60*ms {
			t.Errorf("%+v", r)
		}
		a.send(t, 0, "speech.phrase", `{"RecognitionStatus":"Success","DisplayText":"of an earlier turn"}`)
		a.send(t, 1, "turn.end", "{}")
		expect(2, "speech.context", 0)
		expect(2, "wav", 44)
		expect(2, "audio", 480)
		if r := result(); !r.Finalized || r.End != 180*ms || r.Text != "" {
			t.Errorf("%+v", r)
		}
		a.send(t, 2, "turn.end", "{}") // the service ends the turn without a Finalize
		expect(3, "speech.context", 0)
		expect(3, "wav", 44)
		expect(3, "audio", 480) // the audio of turn 2 again
		a.send(t, 3, "speech.hypothesis", `{"Text":"yes","Offset":0,"Duration":100000}`)
		if r := result(); r.Text != "yes" || r.Start != 180*ms {
			t.Errorf("%+v", r)
		}
		_ = a.conn.Close()
	})
}

func TestAzureContext(t *testing.T) {
	extra := streamOf("", "ru")
	extra.Options.Extra = map[string]any{"mode": "x", "trailingSilenceTimeout": 500}
	for _, c := range []struct {
		stream      pipeline.Stream
		query, want string
	}{
		{
			streamOf("", ""), "format=detailed&language=en-US",
			`{"phraseDetection":{"mode":"Conversation","language":"en-US"},"phraseOutput":{"format":"Detailed","detailed":{"options":["WordTimings"]}}}`,
		},
		{
			streamOf("", "kk", "Parley"), "format=detailed&language=kk-KZ",
			`{"phraseDetection":{"mode":"Conversation","language":"kk-KZ"},"phraseOutput":{"format":"Detailed","detailed":{"options":["WordTimings"]}},
			  "dgi":{"groups":[{"type":"Generic","items":[{"text":"Parley"}]}],"bias":1}}`,
		},
		{
			streamOf("custom", "kk-KZ ru"), "cid=custom&format=detailed",
			`{"phraseDetection":{"mode":"Conversation"},
			  "phraseOutput":{"format":"Detailed","detailed":{"options":["WordTimings"]},"interimResults":{"resultType":"Auto"},"phraseResults":{"resultType":"Always"}},
			  "languageId":{"languages":["kk-KZ","ru-RU"],"mode":"DetectContinuous","onSuccess":{"action":"Recognize"},"onUnknown":{"action":"None"},"priority":"PrioritizeLatency"}}`,
		},
		{
			extra, "format=detailed&language=ru-RU",
			`{"phraseDetection":{"mode":"Conversation","language":"ru-RU","trailingSilenceTimeout":500},"phraseOutput":{"format":"Detailed","detailed":{"options":["WordTimings"]}}}`,
		},
	} {
		b, err := json.Marshal(azureContext(c.stream))
		var got, want any
		if err = errors.Join(err, json.Unmarshal(b, &got), json.Unmarshal([]byte(c.want), &want)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s, %v\nwant %s", b, err, c.want)
		}
		if q := azureQuery(c.stream).Encode(); q != c.query {
			t.Errorf("query %s, want %s", q, c.query)
		}
	}
}

func TestAzureLanguages(t *testing.T) {
	for tags, want := range map[string]string{
		"": "en-US", "en": "en-US", "kk": "kk-KZ", "ru": "ru-RU", "de-AT": "de-AT", "zh-Hans": "zh-CN", "pt": "pt-BR", "uk": "uk-UA", "es-419": "es-419",
	} {
		if got := azureLanguages(pipeline.Stream{Language: tags})[0]; got != want {
			t.Errorf("%q: %s, want %s", tags, got, want)
		}
	}
}

func TestAzureErrors(t *testing.T) {
	for status, want := range map[string]int{"Error": 500, "TooManyRequests": 429, "BadRequest": 400, "Forbidden": 403} {
		_, err := parseAzure([]byte("Path:speech.phrase\r\n\r\n" + `{"RecognitionStatus":"` + status + `"}`))
		var refused *pipeline.RefusedError
		if !errors.As(err, &refused) || refused.Status != want {
			t.Errorf("%s: %v", status, err)
		}
	}
	for _, status := range []string{"NoMatch", "InitialSilenceTimeout", "BabbleTimeout", "EndOfDictation"} {
		if h, err := parseAzure([]byte("Path:speech.phrase\r\n\r\n" + `{"RecognitionStatus":"` + status + `"}`)); err != nil || !h.empty {
			t.Errorf("%s: %+v, %v", status, h, err)
		}
	}
	if _, err := (Azure{Key: "k"}).Recognize(t.Context(), pipeline.Stream{Rate: 8000}); err == nil || !strings.Contains(err.Error(), "region") {
		t.Errorf("without region: %v", err)
	}
}
