package converse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline/tools"
)

// errSilent is an answer that has nothing to say.
var errSilent = errors.New("nothing to say")

// A writer gives the words of a reply to the voice as they come. Where they make
// a pause, what was said is spoken to its end, and another stretch of the voice
// goes on: one that is told nothing for long is closed by its provider.
type writer struct {
	talk   *talk
	reply  *reply
	voices chan<- *opening
	voice  *opening // of the stretch; nil between two
	given  bool     // the stretch has text
	spoke  bool     // the reply has
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
		w.voice.close() // nothing more is coming: let the sound end
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
	if p.Usage != nil {
		w.reply.Spend(*p.Usage)
	}
	if p.Text == "" {
		return nil
	}
	if err := w.open(ctx); err != nil {
		return err
	}
	text := p.Text
	if !w.given && w.spoke {
		text = " " + text // apart from the stretch before
	}
	w.reply.Write(text, time.Now())
	if <-w.voice.done; w.voice.err != nil {
		return context.Canceled // whoever listens to the voice tells why there is none
	}
	if strings.TrimSpace(text) != "" && !w.given {
		w.given, w.spoke = true, true
		w.reply.owed.Add(1)
	}
	return w.say(w.reply.words.Say(p.Text))
}

// say gives the voice text as it is spoken; the voice is open.
func (w *writer) say(text string) error {
	if text == "" {
		return nil
	}
	if err := w.voice.speaking.Say(text); err != nil {
		return fmt.Errorf("voice: %w", err)
	}
	return nil
}

// open begins a stretch, where none is open.
func (w *writer) open(ctx context.Context) error {
	if w.voice != nil {
		return nil
	}
	o := w.talk.open(ctx)
	select {
	case w.voices <- o:
		w.voice, w.given = o, false
		return nil
	case <-ctx.Done():
		o.close()
		return ctx.Err()
	}
}

// pause ends a stretch that has text.
func (w *writer) pause() error {
	if w.voice == nil || !w.given {
		return nil
	}
	o := w.voice
	if <-o.done; o.err != nil {
		return context.Canceled // likewise
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
