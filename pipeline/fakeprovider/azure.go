package fakeprovider

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// azure is the protocol of Azure Speech. It refuses a turn that begins before the last turn has ended.
type azure struct {
	plain
	model      string
	session    *asrSession
	configured bool
	turn       string        // request ID
	base       time.Duration // audio position at the start of the turn
	mayBegin   time.Time     // time from which the next turn may begin
}

// transcribeAzure serves Azure Speech. Unlike Azure, it ends a phrase by silence only if the query contains
// segmentationSilenceTimeoutMs.
func (s *Server) transcribeAzure(w http.ResponseWriter, r *http.Request) {
	z := &azure{model: r.URL.Query().Get("cid")}
	ms, _ := strconv.Atoi(r.URL.Query().Get("segmentationSilenceTimeoutMs")) // 0 if the query has none
	z.session = &asrSession{recognizer: z, silence: time.Duration(ms) * time.Millisecond}
	s.recognize(w, r, z.session)
}

func (z *azure) refusal() ([]any, int) {
	if z.model != UnknownModel {
		return nil, 0
	}
	return nil, websocket.CloseInvalidFramePayloadData
}

func (z *azure) read(kind int, b []byte) ([]byte, request) {
	head, body, ok := azureMessage(kind, b)
	switch {
	case !ok:
		return nil, nonsense
	case head["path"] == "speech.config":
		z.configured = true
	case head["path"] == "speech.context":
		if !json.Valid(body) || time.Now().Before(z.mayBegin) {
			return nil, nonsense
		}
		z.turn = head["x-requestid"]
	case head["path"] != "audio" || !z.configured || z.turn == "" || head["x-requestid"] != z.turn:
		return nil, nonsense
	case head["content-type"] == "audio/x-wav":
		return nil, z.begin(body)
	case len(body) == 0:
		z.mayBegin = time.Now().Add(z.session.script.FinalLag)
		return nil, finish
	default:
		return body, listen
	}
	return nil, listen
}

// begin begins the audio of a turn with its WAV header.
func (z *azure) begin(header []byte) request {
	if len(header) != wavHead || !bytes.HasPrefix(header, []byte("RIFF")) {
		return nonsense
	}
	l, rate := z.session, int(binary.LittleEndian.Uint32(header[wavRateAt:]))
	if rate < 8000 || rate > 48000 {
		return nonsense
	}
	if l.decoder == nil {
		l.rate, l.mulaw, l.decoder = rate, header[20] == 7, l.script.newDecoder(rate)
	}
	z.base = l.upTo()
	l.queue(0, z.message("turn.start", object{"context": object{"serviceTag": "fake"}}))
	return listen
}

func (z *azure) partial(u transcript) any {
	if len(u.words) == 0 {
		return nil
	}
	return z.message("speech.hypothesis", object{
		"Text": u.texts, "Offset": z.ticks(u.start), "Duration": z.ticks(u.end) - z.ticks(u.start),
	})
}

func (z *azure) final(u transcript) (now, due []any) {
	if len(u.words) > 0 {
		due = z.endpoint(u)
	}
	return nil, append(due, z.message("speech.endDetected", object{"Offset": z.ticks(u.upTo)}), z.message("turn.end", object{}))
}

func (z *azure) endpoint(u transcript) []any {
	words := []object{}
	for _, w := range u.words {
		words = append(words, object{"Word": w.Text, "Offset": z.ticks(w.Start), "Duration": z.ticks(w.End) - z.ticks(w.Start)})
	}
	return []any{z.message("speech.phrase", object{
		"Id": "fake", "RecognitionStatus": "Success", "DisplayText": u.texts,
		"Offset": z.ticks(u.start), "Duration": z.ticks(u.end) - z.ticks(u.start),
		"NBest": []object{{"Confidence": 0.99, "Lexical": u.texts, "Display": u.texts, "Words": words}},
	})}
}

// ticks converts an audio position to units of 100 ns from the start of the turn.
func (z *azure) ticks(at time.Duration) int64 { return max(0, int64(at-z.base)/100) }

// message returns a text message of the turn.
func (z *azure) message(path string, body object) string {
	b, err := json.Marshal(body)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("X-RequestId:%s\r\nContent-Type:application/json; charset=utf-8\r\nPath:%s\r\n\r\n%s", z.turn, path, b)
}

// azureMessage returns the headers and the body of a message. The keys of head are in lower case.
func azureMessage(kind int, b []byte) (head map[string]string, body []byte, ok bool) {
	var lines []byte
	if kind == websocket.BinaryMessage {
		if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
			return nil, nil, false
		}
		n := 2 + int(binary.BigEndian.Uint16(b))
		lines, body = b[2:n], b[n:]
	} else if lines, body, ok = bytes.Cut(b, []byte("\r\n\r\n")); !ok {
		return nil, nil, false
	}
	head = map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(lines)), "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		head[strings.ToLower(name)] = strings.TrimSpace(value)
	}
	return head, body, true
}
