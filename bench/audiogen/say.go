// Package audiogen generates test audio: speech in many voices (espeak-ng), and noise such as
// hiss, babble and music. Equal seeds give equal audio.
package audiogen

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/media/codec"
)

// A Voice is an espeak-ng voice and its settings.
type Voice struct {
	Name     string // name for espeak-ng -v
	Language string // BCP 47
	Speed    int    // words per minute
	Pitch    int    // 0 to 99
}

// Voices returns the voices of the benchmarks: male and female, six languages, slow to fast.
func Voices() []Voice {
	return []Voice{
		{"en-us", "en", 165, 45},
		{"en-us+f3", "en", 190, 60},
		{"en-gb+m7", "en", 140, 30},
		{"de+f2", "de", 170, 55},
		{"es+m3", "es", 185, 40},
		{"fr-fr+f4", "fr", 175, 50},
		{"ru+m1", "ru", 160, 35},
		{"kk+f1", "kk", 165, 60},
	}
}

// Others returns other voices than Voices, for training and for babble.
func Others() []Voice {
	return []Voice{
		{"en-gb-scotland+m2", "en", 160, 50},
		{"en-us+f5", "en", 150, 70},
		{"de+m4", "de", 185, 35},
		{"es-419+f1", "es", 165, 55},
		{"fr-be+m5", "fr", 190, 45},
		{"ru+f2", "ru", 175, 65},
		{"en-us+m6", "en", 210, 25},
		{"en-029+f4", "en", 170, 50},
	}
}

// Say returns text spoken by v at rate (Hz), without surrounding silence.
func Say(ctx context.Context, v Voice, text string, rate int) ([]int16, error) {
	path, err := exec.LookPath("espeak-ng")
	if err != nil {
		return nil, fmt.Errorf("espeak-ng is not installed (apt-get install espeak-ng): %w", err)
	}
	cmd := exec.CommandContext(ctx, path, "--stdin", "--stdout", "-v", v.Name, //nolint:gosec // our own voices
		"-s", strconv.Itoa(v.Speed), "-p", strconv.Itoa(v.Pitch))
	cmd.Stdin = strings.NewReader(text)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err = cmd.Run(); err != nil {
		return nil, fmt.Errorf("espeak-ng -v %s: %w: %s", v.Name, err, bytes.TrimSpace(said.Bytes()))
	}
	pcm, err := Parse(out.Bytes(), rate)
	if err != nil {
		return nil, fmt.Errorf("espeak-ng: %w", err)
	}
	return pcm, nil
}

// trim removes audio below -60 dBFS from both ends.
func trim(pcm []int16) []int16 {
	const quiet = 33
	from, to := 0, len(pcm)
	for from < to && pcm[from] < quiet && pcm[from] > -quiet {
		from++
	}
	for to > from && pcm[to-1] < quiet && pcm[to-1] > -quiet {
		to--
	}
	return pcm[from:to]
}

// Phone returns pcm (8 kHz) as it sounds after a telephone line: without frequencies below 300
// Hz, and encoded as µ-law.
func Phone(pcm []int16) []int16 {
	out := make([]int16, len(pcm))
	pass := highpass(300, 8000)
	for i, x := range pcm {
		out[i] = clip(pass(float64(x)))
	}
	enc, dec := codec.PCMU{}.NewEncoder(), codec.PCMU{}.NewDecoder()
	wire := make([]byte, len(out))
	enc.Encode(wire, out)
	dec.Decode(out, wire)
	return out
}
