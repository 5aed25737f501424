// Package pipeline has the words of a conversation: what recognizers, models and
// voices are asked and answer, what a call's brief is, and what came of it.
package pipeline

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/parley-voice/parley/media"
)

// A Recognizer turns speech into text.
type Recognizer interface {
	// Recognize opens a stream. ctx bounds the opening alone.
	Recognize(ctx context.Context, s Stream) (Recognition, error)
}

// A Stream is what a recognizer is asked to listen to.
type Stream struct {
	Rate     int    // Hz
	Model    string // the provider's name for its model; empty for its default
	Language string // BCP 47; empty for the provider's default
}

// A Recognition is one stream of speech on its way to text. WriteFrame never
// blocks on the network: a frame that finds the queue full is dropped and
// counted, and the stream then ends with an error.
type Recognition interface {
	media.Sink
	// Finalize asks for the final text of all that was written so far.
	Finalize() error
	// Results yields what was understood. It is closed when the stream ended;
	// Close then returns why.
	Results() <-chan Result
	// Close ends the stream and returns the error that ended it earlier, if
	// any. It may be called twice.
	Close() error
}

// Reticent is what a Recognition may be, too: one that tells no words before
// Finalize asks for them.
type Reticent interface{ Reticent() bool }

// A Result is what a recognizer understood.
type Result struct {
	Text  string
	Final bool // this stretch of speech will not change any more
	// Finalized marks the answer to Finalize: nothing said before it is open.
	Finalized bool
	// Unanswered, of a Finalized result: the recognizer did not answer, nor give
	// any other sign since it was asked.
	Unanswered bool
	// Start and End are the stretch of speech on the stream's own clock.
	Start, End time.Duration
	Words      []Word
	Confidence float64
	// EndOfTurn is how sure a recognizer that looks for it is that the caller
	// has finished (0 to 1); 0 where it does not tell.
	EndOfTurn float64
}

// A Word is one word and when it was said.
type Word struct {
	Text       string
	Start, End time.Duration
}

// A Model decides what to say.
type Model interface {
	// Reply streams the answer to the prompt. The sequence ends after the
	// first error. Breaking off, or the end of ctx, cancels the request.
	Reply(ctx context.Context, p Prompt) iter.Seq2[Delta, error]
}

// A Prompt is what a model is asked.
type Prompt struct {
	Model        string
	Instructions string
	Messages     []Message // oldest first
	MaxTokens    int       // 0 for the provider's default
	Tools        []Tool    // that it may call
	ToolChoice   string    // the tool that it must call; empty leaves it to the model
}

// A Message is one entry of the history that a model is asked with.
type Message struct {
	Role   Role
	Text   string
	Calls  []ToolCall // that the agent made beside its text; of RoleAgent
	CallID string     // the tool call that Text is the result of; of RoleTool
}

// A Tool is something that a model may have done.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of the arguments
}

// A ToolCall is a model's wish to have a tool do something.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object, as the model wrote it
}

// A Delta is a piece of an answer.
type Delta struct {
	Text  string
	Calls []ToolCall // complete ones, at the end of the answer
	Usage *Usage     // with the last delta, where the provider tells
}

// Usage is what an answer cost.
type Usage struct{ PromptTokens, CompletionTokens int }

// A Voice turns text into speech.
type Voice interface {
	// Open begins one utterance. ctx bounds its whole life.
	Open(ctx context.Context, s Style) (Speaking, error)
}

// A Style is how an utterance is to be spoken.
type Style struct {
	Rate     int    // Hz of the speech that comes out
	Voice    string // the provider's name for the voice; empty for its default
	Model    string
	Language string
}

// A Speaking is one utterance being spoken. Say and Flush belong to one
// goroutine, Audio to another.
type Speaking interface {
	// Say adds text. Text streams: a word may be split between two calls.
	Say(text string) error
	// Flush says that the utterance's text is complete.
	Flush() error
	// Audio yields the speech in order and ends after the last of it, or
	// after the first error.
	Audio() iter.Seq2[Speech, error]
	// Close ends the utterance and lets go of what it held.
	Close() error
}

// A Speech is a stretch of audio, and the words that begin in it, timed from
// the beginning of the utterance.
type Speech struct {
	PCM   []int16
	Words []Word
}
