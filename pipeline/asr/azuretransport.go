package asr

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/pipeline"
)

// Control messages of the stream to an azureTransport.
const (
	azureHello    = "hello"
	azureFinalize = "finalize"
)

const (
	maxBacklog = 11 * time.Second // most audio that waits for the end of a turn
	maxReplay  = 3 * time.Second  // audio that is sent again if the service ends a turn by itself
)

// An azureTransport divides the audio of a stream into turns, each of which has a request
// id. It begins a turn once the earlier one has ended. Received messages are passed on with
// the further headers X-Turn-Start, the audio position at the start of their turn, and
// X-Turn-End, the position of the Finalize that turn.end answers.
type azureTransport struct {
	socket
	rate    int
	context string // body of the message speech.context

	mu       sync.Mutex // guards the fields below and the sending of messages
	turn     azureTurn
	position int    // bytes of audio that the stream sent
	ending   []int  // positions of the Finalizes that wait for a turn.end
	backlog  []byte // audio since the first of these Finalizes
	recent   tail   // newest audio of the turn, at most maxReplay
}

// An azureTurn is a request for the audio from a position on.
type azureTurn struct {
	id    string
	start int // position of the first audio, in bytes
}

// azureID returns a GUID without dashes.
func azureID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // reading random bytes never fails
	return hex.EncodeToString(b[:])
}

// send implements transport.
func (a *azureTransport) send(m message, by time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.kind == websocket.PingMessage {
		return a.write(m, by)
	}
	if m.kind == websocket.TextMessage {
		switch string(m.body) {
		case azureHello:
			return a.begin(by, nil)
		case azureFinalize:
			return a.finalize(by)
		}
		return nil // the stream ends after this
	}
	a.position += len(m.body)
	if len(a.ending) == 0 {
		return a.audio(m.body, by)
	}
	if a.backlog = append(a.backlog, m.body...); a.duration(len(a.backlog)) > maxBacklog {
		return errors.New("the turn does not end")
	}
	return nil
}

// finalize ends the audio of the turn. A further Finalize waits until the next turn begins.
func (a *azureTransport) finalize(by time.Time) error {
	if a.ending = append(a.ending, a.position); len(a.ending) > 1 {
		return nil
	}
	return a.write(a.binary("", nil), by)
}

// audio sends audio within the current turn.
func (a *azureTransport) audio(sound []byte, by time.Time) error {
	a.recent.add(sound)
	return a.write(a.binary("", sound), by)
}

// begin begins a turn with the audio that already came.
func (a *azureTransport) begin(by time.Time, sound []byte) error {
	first := a.turn.id == ""
	a.turn = azureTurn{id: azureID(), start: a.position - len(sound)}
	a.recent.clear()
	var err error
	if first {
		err = a.write(a.text("speech.config", `{"context":{"system":{"name":"Parley","version":"1"}}}`), by)
	}
	err = errors.Join(err, a.write(a.text("speech.context", a.context), by), a.write(a.binary("audio/x-wav", a.waveHeader()), by))
	for chunk := a.bytes(100 * time.Millisecond); len(sound) > 0 && err == nil; {
		n := min(chunk, len(sound))
		err = a.audio(sound[:n], by)
		sound = sound[n:]
	}
	return err
}

// onTurnEnd begins the next turn. It returns the position of the answered Finalize, 0 if
// the service ended the turn by itself.
func (a *azureTransport) onTurnEnd() (finalized int, err error) {
	by := time.Now().Add(writeLimit)
	if len(a.ending) == 0 { // send again what the service may have missed
		return 0, a.begin(by, bytes.Clone(a.recent.newest()))
	}
	finalized = a.ending[0]
	backlog, more := a.backlog, a.ending[1:]
	a.ending, a.backlog = nil, nil
	if len(more) == 0 {
		return finalized, a.begin(by, backlog)
	}
	// The turn that the next Finalize ends is shorter than the rest of the backlog.
	n := len(backlog) - (a.position - more[0])
	position := a.position
	a.position = more[0]
	err = errors.Join(a.begin(by, backlog[:n]), a.write(a.binary("", nil), by))
	a.position, a.ending, a.backlog = position, append([]int(nil), more...), bytes.Clone(backlog[n:])
	return finalized, err
}

// receive implements transport.
func (a *azureTransport) receive() ([]byte, error) {
	for {
		b, err := a.socket.receive()
		if err != nil {
			return nil, err
		}
		head, _, err := parseAzureHeaders(b)
		if err != nil {
			return b, nil //nolint:nilerr // the parser of the stream reports it
		}
		if out, err := a.onMessage(head, b); out != nil || err != nil {
			return out, err
		}
	}
}

// onMessage returns the message with the further headers, or nil for a message about an
// earlier turn.
func (a *azureTransport) onMessage(head map[string]string, b []byte) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !strings.EqualFold(head["x-requestid"], a.turn.id) {
		return nil, nil
	}
	start, end := a.duration(a.turn.start), time.Duration(0)
	if head["path"] == "turn.end" {
		finalized, err := a.onTurnEnd()
		if err != nil {
			return nil, err
		}
		end = a.duration(finalized)
	}
	return append(fmt.Appendf(nil, "X-Turn-Start:%d\r\nX-Turn-End:%d\r\n", start, end), b...), nil
}

func (a *azureTransport) write(m message, by time.Time) error { return a.socket.send(m, by) }

// headers returns the headers of a message.
func (a *azureTransport) headers(path, content string) string {
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	out := "Path: " + path + "\r\nX-RequestId: " + a.turn.id + "\r\nX-Timestamp: " + now + "\r\n"
	if content != "" {
		out += "Content-Type: " + content + "\r\n"
	}
	return out
}

func (a *azureTransport) text(path, body string) message {
	return text(a.headers(path, "application/json") + "\r\n" + body)
}

// binary returns an audio message: the length of the headers, the headers and the audio.
func (a *azureTransport) binary(content string, sound []byte) message {
	head := a.headers("audio", content)
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(head)+len(sound)), uint16(len(head))) //nolint:gosec // below 200
	return message{kind: websocket.BinaryMessage, body: append(append(b, head...), sound...)}
}

// waveHeader returns the header of a WAV stream of unknown length.
func (a *azureTransport) waveHeader() []byte {
	format, size := uint16(7), 1 // format µ-law
	if a.rate != telephone {
		format, size = 1, 2
	}
	b := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00"), byte(format), 0, 1, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(a.rate))      //nolint:gosec // a sample rate
	b = binary.LittleEndian.AppendUint32(b, uint32(size*a.rate)) //nolint:gosec // a sample rate
	return append(b, byte(size), 0, byte(8*size), 0, 'd', 'a', 't', 'a', 0, 0, 0, 0)
}

// bytes and duration convert between lengths of audio.
func (a *azureTransport) bytes(d time.Duration) int {
	n := int(d * time.Duration(a.rate) / time.Second)
	if a.rate != telephone {
		n *= 2
	}
	return n
}

func (a *azureTransport) duration(n int) time.Duration {
	if a.rate != telephone {
		n /= 2
	}
	return time.Duration(n) * time.Second / time.Duration(a.rate)
}

// parseAzureHeaders returns the headers, by lower-case names, and the body of a text
// message. Header names and paths are not case-sensitive.
func parseAzureHeaders(b []byte) (head map[string]string, body []byte, err error) {
	lines, body, found := bytes.Cut(b, []byte("\r\n\r\n"))
	if !found {
		return nil, nil, fmt.Errorf("not JSON with headers: %s", pipeline.Clean(string(b[:min(len(b), 40)])))
	}
	head = map[string]string{}
	for line := range strings.SplitSeq(string(lines), "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		head[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	return head, body, nil
}

// azureTime reads a header that an azureTransport added.
func azureTime(header string) time.Duration {
	n, err := strconv.ParseInt(header, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n), 1000*time.Hour)
}
