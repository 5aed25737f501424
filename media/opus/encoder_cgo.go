//go:build opus

package opus

/*
#cgo pkg-config: opus
#include <opus.h>

static void voice(OpusEncoder *e) {
	opus_encoder_ctl(e, OPUS_SET_BITRATE(32000));
	opus_encoder_ctl(e, OPUS_SET_COMPLEXITY(5));
	opus_encoder_ctl(e, OPUS_SET_SIGNAL(OPUS_SIGNAL_VOICE));
}
*/
import "C"

import (
	"unsafe"

	"github.com/parley-voice/parley/media/codec"
)

// CanEncode reports whether this build can encode Opus.
const CanEncode = true

// encoder holds the state of libopus in Go memory, which is possible because the state contains no pointers.
type encoder struct{ state []byte }

// NewEncoder returns an encoder of mono audio at Rate. It makes packets of 20 ms at 32 kbit/s. It must be used by one
// goroutine only.
func NewEncoder() codec.Encoder {
	e := &encoder{make([]byte, C.opus_encoder_get_size(1))}
	C.opus_encoder_init(e.c(), Rate, 1, C.OPUS_APPLICATION_VOIP) // can fail only for other sample rates
	C.voice(e.c())
	return e
}

func (e *encoder) c() *C.OpusEncoder { return (*C.OpusEncoder)(unsafe.Pointer(&e.state[0])) }

// Encode implements codec.Encoder. pcm is the audio of one packet, and dst must have room for the packet.
func (e *encoder) Encode(dst []byte, pcm []int16) int {
	if len(dst) == 0 || len(pcm) == 0 {
		return 0
	}
	n := C.opus_encode(e.c(), (*C.opus_int16)(&pcm[0]), C.int(len(pcm)), (*C.uchar)(&dst[0]), C.opus_int32(len(dst)))
	return max(0, int(n))
}
