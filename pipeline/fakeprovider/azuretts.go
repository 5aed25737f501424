package fakeprovider

import (
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/gorilla/websocket"
)

// azureSpeech is a connection for speech from Azure.
type azureSpeech struct {
	*ttsSession
	conn *websocket.Conn
	id   string // ID of the turn
}

// speakAzure serves Azure's two speech protocols: text in pieces, and a whole text as SSML. Speech is sent word by word
// with word times. A connection serves one turn after another.
func (s *Server) speakAzure(w http.ResponseWriter, r *http.Request) {
	v, conn, done := s.voice(w, r)
	if v == nil {
		return
	}
	defer done()
	a := &azureSpeech{ttsSession: v, conn: conn}
	v.send = a.sendWord
	for {
		_, b, err := conn.ReadMessage()
		if err != nil {
			return
		}
		head, body, _ := strings.Cut(string(b), "\r\n\r\n")
		path, id := azureHeader(head, "Path"), azureHeader(head, "X-RequestId")
		switch path {
		case "synthesis.context":
			if !a.start(id, body) {
				sendClose(conn, websocket.CloseInvalidFramePayloadData, "Unsupported voice or output format.")
				return
			}
			_ = a.text("turn.start", `{"context":{"serviceTag":"x"}}`)
			_ = a.text("response", `{"audio":{"type":"inline","streamId":"1"}}`)
		case "text.piece":
			if !a.say(r.Context(), body) {
				return
			}
		case "ssml":
			if !a.say(r.Context(), textOfSSML(body)) {
				return
			}
			fallthrough
		case "text.end":
			if !a.neverEnds() {
				_ = a.text("turn.end", "{}")
			}
		}
	}
}

// start begins a turn. It returns false if the settings are not supported.
func (a *azureSpeech) start(id, settings string) bool {
	var m struct {
		Synthesis struct {
			Audio struct {
				Format string `json:"outputFormat"`
			} `json:"audio"`
			Input struct {
				Streaming bool   `json:"bidirectionalStreamingMode"`
				Voice     string `json:"voiceName"`
			} `json:"input"`
		} `json:"synthesis"`
	}
	if json.Unmarshal([]byte(settings), &m) != nil || m.Synthesis.Input.Streaming && m.Synthesis.Input.Voice == "" {
		return false
	}
	parts := strings.Split(m.Synthesis.Audio.Format, "-") // such as raw-16khz-16bit-mono-pcm
	if len(parts) != 5 || parts[0] != "raw" {
		return false
	}
	hz := strings.TrimSuffix(strings.TrimSuffix(parts[1], "hz"), "k")
	if strings.HasSuffix(parts[1], "khz") {
		hz += "000"
	}
	rate, accepted := pcmRate(hz)
	if !accepted {
		return false
	}
	a.id, a.rate, a.encoding, a.words, a.duration = id, rate, parts[4], 0, 0
	return true
}

func (a *azureSpeech) text(path, body string) error {
	return a.conn.WriteMessage(websocket.TextMessage,
		[]byte("X-RequestId:"+a.id+"\r\nContent-Type:application/json; charset=utf-8\r\nPath:"+path+"\r\n\r\n"+body))
}

// sendWord sends the times of a word, then its sound. A punctuation mark at its end has a time of its own.
func (a *azureSpeech) sendWord(w spokenWord) error {
	ticks := func(d time.Duration) int64 { return int64(d / (100 * time.Nanosecond)) }
	boundary := func(text, kind string, at, length time.Duration) object {
		return object{"Type": "WordBoundary", "Data": object{
			"Offset": ticks(at), "Duration": ticks(length), "text": object{"Text": text, "Length": len(text), "BoundaryType": kind},
		}}
	}
	word := strings.TrimRightFunc(w.text, unicode.IsPunct)
	all := []object{boundary(word, "WordBoundary", w.at, w.length)}
	if mark := w.text[len(word):]; mark != "" {
		all = append(all, boundary(mark, "PunctuationBoundary", w.at+w.length, 0))
	}
	b, err := json.Marshal(object{"Metadata": all})
	if err != nil {
		return err
	}
	if err := a.text("audio.metadata", string(b)); err != nil {
		return err
	}
	head := "X-RequestId:" + a.id + "\r\nContent-Type:audio/x-raw\r\nX-StreamId:1\r\nPath:audio\r\n"
	b = append(binary.BigEndian.AppendUint16(nil, uint16(len(head))), head...) //nolint:gosec // short
	return a.conn.WriteMessage(websocket.BinaryMessage, append(b, w.sound...))
}

// textOfSSML returns the text without the XML elements, or "" if the XML is malformed.
func textOfSSML(body string) string {
	var text strings.Builder
	for d := xml.NewDecoder(strings.NewReader(body)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			return ""
		}
		if chars, ok := token.(xml.CharData); ok {
			text.WriteString(string(chars) + " ")
		}
	}
}

// azureHeader returns the value of a header, or "".
func azureHeader(head, name string) string {
	for line := range strings.SplitSeq(head, "\r\n") {
		if key, value, _ := strings.Cut(line, ":"); strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
