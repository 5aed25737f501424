package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline/tools"
)

// errSilent reports a reply without text.
var errSilent = errors.New("nothing to say")

// A writer streams the text of a reply into the voice. At a pause in the text it ends the voice stream and later
// opens another, because providers close a stream that gets no text for long.
type writer struct {
	speaker *speaker
	reply   *reply
	voices  chan<- *voiceStream
	voice   *voiceStream // stream that takes text; nil between two streams
	given   bool         // the stream has received text
	spoke   bool         // the reply has text
}

func (w *writer) write(ctx context.Context, text pieces) error {
	err := w.open(ctx)
	if err != nil {
		return err
	}
	for p, fault := range text(ctx) {
		if err = fault; err == nil {
			err = w.piece(ctx, p)
		}
		if err != nil {
			break
		}
	}
	if err == nil && !w.spoke {
		err = errSilent
	}
	if err == nil {
		err = w.pause()
	}
	if w.voice != nil {
		w.voice.close() // no text follows
	}
	return err
}

func (w *writer) piece(ctx context.Context, p tools.Piece) error {
	switch {
	case p.Resume:
		return w.open(ctx)
	case p.Pause:
		return w.pause()
	}
	if p.Cut != nil {
		w.speaker.log.Warn("the model ended a reply early", "err", p.Cut)
	}
	if p.Usage != nil {
		w.reply.AddUsage(*p.Usage)
	}
	if p.Text == "" {
		return nil
	}
	if err := w.open(ctx); err != nil {
		return err
	}
	text := p.Text
	if !w.given && w.spoke {
		text = " " + text // separates the text from the text of the previous stream
	}
	w.reply.Write(text, time.Now())
	if <-w.voice.done; w.voice.err != nil {
		return context.Canceled // queueAll reports the error of the voice
	}
	if strings.TrimSpace(text) != "" && !w.given {
		w.given, w.spoke = true, true
		w.reply.owed.Add(1)
	}
	return w.say(w.reply.words.Write(p.Text))
}

func (w *writer) say(text string) error {
	if text == "" {
		return nil
	}
	if err := w.voice.speaking.Write(text); err != nil {
		return fmt.Errorf("voice: %w", err)
	}
	return nil
}

func (w *writer) open(ctx context.Context) error {
	if w.voice != nil {
		return nil
	}
	o := w.speaker.openVoice(ctx)
	select {
	case w.voices <- o:
		w.voice, w.given = o, false
		return nil
	case <-ctx.Done():
		o.close()
		return ctx.Err()
	}
}

// pause flushes the current stream. Further text opens another stream. If the current stream has received no text,
// pause does nothing.
func (w *writer) pause() error {
	if w.voice == nil || !w.given {
		return nil
	}
	o := w.voice
	if <-o.done; o.err != nil {
		return context.Canceled // queueAll reports the error of the voice
	}
	if err := w.say(w.reply.words.End()); err != nil {
		return err
	}
	if err := o.speaking.Flush(); err != nil {
		return fmt.Errorf("voice: %w", err)
	}
	w.voice = nil
	return nil
}
