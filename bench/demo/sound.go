package demo

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/parley-voice/parley/media/recorder"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
)

// Pauses of the recordings: before the callee's first word, and before each line of agent and callee.
const (
	soundRate   = 8000
	soundStart  = 400 * time.Millisecond
	agentPause  = 750 * time.Millisecond
	calleePause = 500 * time.Millisecond
)

// Voices are the voices of a recording. Without a Voice, words become tones.
type Voices struct {
	Voice         pipeline.Voice
	Agent, Callee string
}

// Sound is the recording of a scene with its transcript.
type Sound struct {
	WAV    []byte
	Lines  []pipeline.Line
	Length time.Duration
}

// Record speaks a scene: the callee on the left channel and the agent on the right one.
func (v Voices) Record(ctx context.Context, s Scene) (Sound, error) {
	var out Sound
	at := int(soundStart * soundRate / time.Second)
	var stereo []int16
	for i, text := range s.Lines {
		isAgent := i%2 == 1
		role, pause, voice := pipeline.RoleCaller, calleePause, v.Callee
		if isAgent {
			role, pause, voice = pipeline.RoleAgent, agentPause, v.Agent
		}
		if i > 0 {
			at += int(pause * soundRate / time.Second)
		}
		pcm, err := v.say(ctx, voice, text)
		if err != nil {
			return out, fmt.Errorf("speak %q: %w", text, err)
		}
		stereo = append(stereo, make([]int16, 2*(at+len(pcm))-len(stereo))...)
		for k, sample := range pcm {
			if isAgent {
				stereo[2*(at+k)+1] = sample
			} else {
				stereo[2*(at+k)] = sample
			}
		}
		line := pipeline.Line{Role: role, Text: text, Start: soundTime(at), End: soundTime(at + len(pcm)), Turn: i / 2}
		out.Lines = append(out.Lines, line)
		at += len(pcm)
	}
	stereo = append(stereo, make([]int16, soundRate)...) // half a second
	out.Length = soundTime(len(stereo) / 2)
	b := bytes.NewBuffer(recorder.Header(soundRate, uint32(2*len(stereo)))) //nolint:gosec // less than a minute
	if err := binary.Write(b, binary.LittleEndian, stereo); err != nil {
		return out, err
	}
	out.WAV = b.Bytes()
	return out, nil
}

func soundTime(samples int) time.Duration { return time.Duration(samples) * time.Second / soundRate }

// say returns the sound of a text.
func (v Voices) say(ctx context.Context, voice, text string) ([]int16, error) {
	if v.Voice == nil {
		pcm, _ := tone.Encode(soundRate, text)
		return pcm, nil
	}
	speech, err := v.Voice.Open(ctx, pipeline.Style{Rate: soundRate, Voice: voice})
	if err != nil {
		return nil, err
	}
	defer func() { _ = speech.Close() }()
	if err = speech.Write(text); err == nil {
		err = speech.Flush()
	}
	if err != nil {
		return nil, err
	}
	var pcm []int16
	for part, err := range speech.Audio() {
		if err != nil {
			return nil, err
		}
		pcm = append(pcm, part.PCM...)
	}
	return pcm, nil
}
