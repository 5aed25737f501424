package conversation_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/pipetest"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// TestLongSentence lets a caller speak for 12 s without a pause. Every word is answered, in one
// turn, even if the connection to the recognizer breaks.
func TestLongSentence(t *testing.T) {
	var words []string
	for i := range 68 {
		words = append(words, strconv.Itoa(100+i))
	}
	text := strings.Join(words, " ")
	for _, cut := range []time.Duration{0, 2 * time.Second, 8 * time.Second, 11 * time.Second} {
		for _, name := range []string{"deepgram", "flux", "assemblyai", "openai"} {
			if name == "openai" && cut > 10*time.Second {
				continue // this recognizer sends no partial text, and only 10 s of audio are kept
			}
			synctest.Test(t, func(t *testing.T) {
				n := fakeprovider.NewNet()
				fakes := fakeprovider.Serve(n, fakeprovider.Typical())
				defer func() { _ = fakes.Close() }()
				var first net.Conn
				s := pipetest.New(fakeprovider.Typical())
				s.Clients.Recognizers["cut"] = recognizers(func(ctx context.Context, network, address string) (net.Conn, error) {
					c, err := n.Dial(ctx, network, address)
					if first == nil {
						first = c
					}
					return c, err
				})[name]
				e := pipetest.FakeEngines()
				e.ASR = pipeline.Engine{Provider: "cut"}
				c := talkOn(t, s, pipeline.SessionConfig{Engines: e})
				c.pass(500 * time.Millisecond)
				if cut > 0 {
					time.AfterFunc(cut, func() { _ = first.Close() })
				}
				from := time.Now()
				c.say(text)
				if d := time.Since(from); d < 11*time.Second {
					t.Fatalf("spoke for %v", d)
				}
				c.pass(6 * time.Second)
				o := c.hangup()
				var told []string
				for _, l := range o.Lines {
					if l.Role == pipeline.RoleCaller {
						told = append(told, l.Text)
					}
				}
				if len(told) != 1 || told[0] != text {
					t.Errorf("%s, cut after %v: the caller said %q, answered was %q", name, cut, text, told)
				}
			})
		}
	}
}

// recognizers returns the clients of all recognizers.
func recognizers(dial wsdial.DialFunc) map[string]pipeline.Recognizer {
	return map[string]pipeline.Recognizer{
		"deepgram":   asr.Deepgram{URL: "ws://fake/v1/listen", Dial: dial},
		"flux":       asr.Flux{URL: "ws://fake/v2/listen", Dial: dial},
		"assemblyai": asr.AssemblyAI{URL: "ws://fake/v3/ws", Dial: dial},
		"openai":     asr.OpenAI{URL: "ws://fake/v1/realtime", Dial: dial},
	}
}
