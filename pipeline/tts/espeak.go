package tts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

// Espeak runs the local espeak-ng binary.
type Espeak struct {
	Path string // path of the binary; empty means "espeak-ng" in PATH
}

// espeakSpeed is the normal speed of espeak-ng in words per minute.
const espeakSpeed = 175

// espeakName matches voices such as "kk", "en-us+f3" and "mb/mb-en1".
var espeakName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+/-]*$`)

// OptionRules implements pipeline.RuledProvider. It names no languages: espeak-ng has more than
// 100, among them Kazakh and Russian.
func (Espeak) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{Takes: []string{"speed"}}
}

// Open implements pipeline.Voice. The style's Voice is a voice of espeak-ng (espeak-ng
// --voices), such as "en-us+f3". A style without a voice gets the voice of its language.
func (e Espeak) Open(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, error) {
	path, err := exec.LookPath(cmp.Or(e.Path, "espeak-ng"))
	if err != nil {
		return nil, fmt.Errorf("espeak-ng is not installed (apt-get install espeak-ng): %w", err)
	}
	voice := cmp.Or(s.Voice, s.Language, "en")
	if !espeakName.MatchString(voice) {
		return nil, refuse("espeak-ng", fmt.Sprintf("no voice %q", voice))
	}
	speed := strconv.Itoa(int(espeakSpeed * cmp.Or(within(s.Options.Speed, 0.5, 2), 1)))
	return newClauseSynthesis(ctx, s.Rate, func(ctx context.Context, clause string) (io.ReadCloser, int, error) {
		return espeak(ctx, path, []string{"--stdin", "--stdout", "-v", voice, "-s", speed}, clause)
	}), nil
}

// espeak starts the binary with the clause as its standard input. It returns the audio of the WAV
// stream that the binary writes, and its rate in Hz.
func espeak(ctx context.Context, path string, args []string, clause string) (io.ReadCloser, int, error) {
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // the operator configures the path
	cmd.Stdin = strings.NewReader(clause)
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, 0, fmt.Errorf("espeak-ng: %w", err)
	}
	if err = cmd.Start(); err != nil {
		return nil, 0, fmt.Errorf("espeak-ng: %w", err)
	}
	p := &process{out, cmd}
	rate, err := wavRate(out)
	if err != nil {
		err = errors.Join(err, p.Close())
		if strings.Contains(stderr.String(), "voice does not exist") {
			return nil, 0, refuse("espeak-ng", "no voice or language "+args[3])
		}
		return nil, 0, fmt.Errorf("espeak-ng: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return p, rate, nil
}

// A process is the output of a command; Close waits for it.
type process struct {
	io.ReadCloser
	cmd *exec.Cmd
}

// Close ends the command.
func (p *process) Close() error {
	err := p.ReadCloser.Close() // a command that is still writing receives SIGPIPE
	var exit *exec.ExitError
	if waited := p.cmd.Wait(); waited != nil && !errors.As(waited, &exit) {
		err = errors.Join(err, waited)
	}
	return err
}

// wavRate reads the header of a WAV stream of 16-bit mono PCM and returns its rate in Hz.
func wavRate(r io.Reader) (int, error) {
	var riff [12]byte
	if _, err := io.ReadFull(r, riff[:]); err != nil {
		return 0, fmt.Errorf("no WAV header: %w", err)
	}
	if string(riff[:4]) != "RIFF" || string(riff[8:]) != "WAVE" {
		return 0, errors.New("not a WAV stream")
	}
	rate := 0
	for {
		var chunk [8]byte
		if _, err := io.ReadFull(r, chunk[:]); err != nil {
			return 0, fmt.Errorf("no audio in the WAV stream: %w", err)
		}
		size := binary.LittleEndian.Uint32(chunk[4:])
		switch id := string(chunk[:4]); {
		case id == "data" && rate > 0:
			return rate, nil
		case size > 1<<16:
			return 0, fmt.Errorf("WAV chunk %q of %d bytes before the audio", id, size)
		default:
			b := make([]byte, size)
			if _, err := io.ReadFull(r, b); err != nil {
				return 0, fmt.Errorf("WAV chunk %q: %w", id, err)
			}
			if id != "fmt " {
				continue
			}
			var err error
			if rate, err = formatRate(b); err != nil {
				return 0, err
			}
		}
	}
}

// formatRate returns the rate in Hz from a format chunk of 16-bit mono PCM.
func formatRate(b []byte) (int, error) {
	if len(b) < 16 || binary.LittleEndian.Uint16(b) != 1 || binary.LittleEndian.Uint16(b[2:]) != 1 ||
		binary.LittleEndian.Uint16(b[14:]) != 16 {
		return 0, errors.New("the WAV stream is not 16-bit mono PCM")
	}
	rate := int(binary.LittleEndian.Uint32(b[4:]))
	if rate < 8000 || rate > 48000 {
		return 0, fmt.Errorf("unsupported WAV rate of %d Hz; accepted: 8000 to 48000", rate)
	}
	return rate, nil
}
