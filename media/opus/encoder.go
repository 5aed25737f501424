//go:build !opus

package opus

import "github.com/parley-voice/parley/media/codec"

// Encodes tells whether this build can say Opus: it is built with the tag opus, by
// a C compiler, and needs libopus.
const Encodes = false

// NewEncoder returns nil: this build says no Opus.
func NewEncoder() codec.Encoder { return nil }
