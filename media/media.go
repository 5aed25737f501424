// Package media defines audio frames, their sources and sinks, and legs. It imports no other package of this module.
package media

import "time"

// FrameTime is the duration of every frame.
const FrameTime = 20 * time.Millisecond

// Frame is mono 16-bit PCM with the duration FrameTime, at the sample rate of its stream.
type Frame []int16

// FrameLen returns the number of samples of a frame at a sample rate in Hz.
func FrameLen(rate int) int { return rate / int(time.Second/FrameTime) }

// Source returns the frames of one stream.
type Source interface {
	// Rate is the sample rate in Hz. It never changes.
	Rate() int
	// ReadFrame fills f, which must have the length FrameLen(Rate()). It waits until a frame is available. It returns
	// io.EOF after the end of the stream. Frames are in order and without gaps, because lost audio is concealed.
	ReadFrame(f Frame) error
}

// Sink takes the frames of one stream, in order. It must not keep f.
type Sink interface {
	// Rate is the sample rate in Hz. It never changes.
	Rate() int
	WriteFrame(f Frame) error
}

// Feed supplies the audio that a leg sends.
type Feed interface {
	// FillFrame fills f with the next frame, or with silence if there is no audio. due is the time at which the frame
	// is sent. due is in the future if the packet needs further frames. The media clock calls FillFrame for every call
	// of the process, so FillFrame must not block or allocate.
	FillFrame(f Frame, due time.Time)
}

// FeedFunc is a function that implements Feed.
type FeedFunc func(f Frame, due time.Time)

// FillFrame implements Feed.
func (fill FeedFunc) FillFrame(f Frame, due time.Time) { fill(f, due) }
