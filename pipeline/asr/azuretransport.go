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

// Control messages that a stream sends to its azureTransport. They do not go to Azure.
const (
	azureHello    = "hello"
	azureFinalize = "finalize"
)

const (
	maxBacklog = 11 * time.Second // most audio that may wait for turn.end
	maxReplay  = 3 * time.Second  // most audio that is sent again if Azure ends a turn without a Finalize
)

// An azureTransport divides the audio of a stream into turns. Each turn has its own request ID and begins when the
// turn before it has ended. receive adds two headers to each message: X-Turn-Start, the audio position at the start
// of the turn, and X-Turn-End, the position of the Finalize that the message answers, or 0. Both are in nanoseconds.
type azureTransport struct {
	socket
	rate    int
	context string // body of the message speech.context

	mu       sync.Mutex // guards the fields below and the sending of messages
	turn     azureTurn
	position int    // bytes of audio that the stream sent
	ending   []int  // positions of the Finalizes that wait for turn.end, oldest first
	backlog  []byte // audio since the oldest of these Finalizes
	recent   tail   // newest audio of the turn, at most maxReplay
}

// An azureTurn is the turn that receives the audio from position start on.
type azureTurn struct {
	id    string // request ID
	start int    // in bytes of audio
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
		return nil // protocol.bye: Azure needs no message at the end
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

// finalize ends the audio of the turn, unless an earlier Finalize has already ended it. In that case
// the Finalize waits until the next turn begins.
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

// begin begins a turn with audio that is already available.
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

// onTurnEnd begins the next turn. It returns the position of the Finalize that ended the last turn,
// or 0 if Azure ended that turn without a Finalize.
func (a *azureTransport) onTurnEnd() (finalized int, err error) {
	by := time.Now().Add(writeLimit)
	if len(a.ending) == 0 { // the service may have missed the newest audio
		return 0, a.begin(by, bytes.Clone(a.recent.newest()))
	}
	finalized = a.ending[0]
	backlog, more := a.backlog, a.ending[1:]
	a.ending, a.backlog = nil, nil
	if len(more) == 0 {
		return finalized, a.begin(by, backlog)
	}
	// The next Finalize ends the new turn within the backlog. The audio after it keeps waiting.
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

// onMessage returns the message with the added headers, or nil if it belongs to an earlier turn.
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

// binary returns an audio message: two bytes with the length of the headers, the headers, the audio.
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

// bytes returns the size of encoded audio of duration d.
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

// parseAzureHeaders returns the headers and the body of a text message. Header names are not
// case-sensitive, so the keys of head are in lower case.
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

// azureTime parses the value of X-Turn-Start or X-Turn-End. It returns 0 for an invalid value.
func azureTime(header string) time.Duration {
	n, err := strconv.ParseInt(header, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n), 1000*time.Hour)
}
