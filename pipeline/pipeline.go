// Package pipeline defines the types of a conversation: the interfaces of recognizers,
// models and voices, the configuration of a session, and its outcome.
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
	// Recognize opens a stream. ctx bounds only the opening.
	Recognize(ctx context.Context, s Stream) (Recognition, error)
}

// A Stream configures a recognizer stream.
type Stream struct {
	Rate     int    // sample rate in Hz
	Model    string // name of the provider's model; empty for the provider's default
	Language string // language of the caller, BCP 47; empty for the provider's default
	Options  Options
}

// A Recognition is one stream of speech being transcribed. WriteFrame never blocks: if its
// queue is full, the frame is dropped and counted, and the stream later ends with an
// error.
type Recognition interface {
	media.Sink
	// Finalize requests the final text of all audio written so far.
	Finalize() error
	// Results delivers transcripts. It is closed when the stream ends; Close then returns
	// the reason.
	Results() <-chan Result
	// Close ends the stream and returns the error that ended it earlier, if any. It may be
	// called twice.
	Close() error
}

// FinalizeOnly is an optional interface of a Recognition. It reports true if the stream
// returns no text before Finalize.
type FinalizeOnly interface{ FinalizeOnly() bool }

// A Batcher is an optional interface of a Recognition. SetBatch sets how much audio the Recognition may collect for one
// message; 0 means that no frame waits longer than the provider requires. The setting applies from the next frame on,
// and to the audio collected so far. Only the goroutine that writes frames may call SetBatch.
type Batcher interface{ SetBatch(d time.Duration) }

// A Prober is an optional interface of a Recognizer whose streams open before the provider
// has accepted them, so that an open stream does not show that the provider works. Probe
// sends a short silence and returns the provider's error. ctx bounds it.
type Prober interface {
	Probe(ctx context.Context, s Stream) error
}

// A Result is a transcript of a stretch of speech.
type Result struct {
	Text  string
	Final bool // the text will not change any more
	// Finalized marks the response to Finalize: all earlier audio is final.
	Finalized bool
	// Unanswered marks a Finalized result that the client made itself, because the recognizer did not answer Finalize
	// in time.
	Unanswered bool
	// Start and End count from the first frame of the stream. End is 0 if the times are unknown.
	Start, End time.Duration
	Words      []Word
	Confidence float64
	// EndOfTurn is the probability that the caller has finished, 0 to 1; 0 if the
	// recognizer does not report it.
	EndOfTurn float64
}

// A Word is one word and its times.
type Word struct {
	Text       string
	Start, End time.Duration
}

// A Model generates replies.
type Model interface {
	// Reply streams the answer to the prompt. The sequence ends after the first error. Ending the
	// iteration, or ctx, cancels the request. If the model ends the answer early, the error is
	// ErrLength, ErrContentFilter or a *RefusalError. The text so far is valid then and the usage
	// is known; tool calls, which may be incomplete, are dropped.
	Reply(ctx context.Context, p Prompt) iter.Seq2[Delta, error]
}

// A Prompt is a request to a model.
type Prompt struct {
	Model        string
	Instructions string
	Messages     []Message // messages, oldest first
	MaxTokens    int       // maximum number of tokens of the answer; 0 for the provider's default
	Tools        []Tool    // tools that the model may call
	ToolChoice   string    // tool that the model must call; empty if it may choose
	Options      Options   // MaxTokens above already includes the option max_tokens
}

// A Message is one entry of the history sent to a model.
type Message struct {
	Role   Role
	Text   string
	Calls  []ToolCall // only of RoleAgent: calls made together with the text
	CallID string     // only of RoleTool: call whose result Text is
}

// A Tool describes a function to a model.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of the arguments
}

// A ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // as the model wrote them; normally a JSON object
	// Extra is data of the provider that must return with the call in the history, such as
	// a signature of Gemini; empty for none.
	Extra json.RawMessage
}

// A Delta is a piece of a streamed answer.
type Delta struct {
	Text  string
	Calls []ToolCall // complete calls, at the end of the answer
	Usage *Usage     // comes with the last delta, if the provider reports it
}

// Usage counts the tokens of an answer. CachedTokens is the part of PromptTokens that the provider read from its
// cache. CompletionTokens include the tokens of reasoning.
type Usage struct{ PromptTokens, CompletionTokens, CachedTokens int }

// A Voice turns text into speech.
type Voice interface {
	// Open begins one utterance. ctx bounds the whole utterance.
	Open(ctx context.Context, s Style) (Synthesis, error)
}

// A Style configures an utterance.
type Style struct {
	Rate     int    // sample rate of the speech in Hz
	Voice    string // name of the provider's voice; empty for the provider's default
	Model    string
	Language string
	Options  Options
}

// A Synthesis is one utterance being synthesized. One goroutine calls Write and Flush; another reads Audio.
type Synthesis interface {
	// Write adds text. A word may be split between two calls.
	Write(text string) error
	// Flush declares that the text is complete.
	Flush() error
	// Audio yields the speech in order and ends after the last of it or after the first
	// error.
	Audio() iter.Seq2[Speech, error]
	// Close ends the utterance and releases its resources.
	Close() error
}

// A Speech is a stretch of audio with the words that begin in it, timed from the start of
// the utterance.
type Speech struct {
	PCM   []int16
	Words []Word
}
