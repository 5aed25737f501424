//go:build !opus

package opus

import "github.com/parley-voice/parley/media/codec"

// CanEncode reports whether this build can encode Opus. Encoding needs the build tag opus, a C compiler and libopus.
const CanEncode = false

// NewEncoder returns nil: this build cannot encode Opus.
func NewEncoder() codec.Encoder { return nil }
