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

// Encodes tells whether this build can say Opus.
const Encodes = true

// An encoder is libopus's, in memory of ours: it holds no pointer to itself.
type encoder struct{ state []byte }

// NewEncoder returns the sending side of one stream: Rate in, mono, packets of
// 20 ms at 32 kbit/s. It belongs to one goroutine.
func NewEncoder() codec.Encoder {
	e := &encoder{make([]byte, C.opus_encoder_get_size(1))}
	C.opus_encoder_init(e.c(), Rate, 1, C.OPUS_APPLICATION_VOIP) // fails for other rates only
	C.voice(e.c())
	return e
}

func (e *encoder) c() *C.OpusEncoder { return (*C.OpusEncoder)(unsafe.Pointer(&e.state[0])) }

// Encode implements codec.Encoder: pcm is one packet's, and dst has room for it.
func (e *encoder) Encode(dst []byte, pcm []int16) int {
	if len(dst) == 0 || len(pcm) == 0 {
		return 0
	}
	n := C.opus_encode(e.c(), (*C.opus_int16)(&pcm[0]), C.int(len(pcm)), (*C.uchar)(&dst[0]), C.opus_int32(len(dst)))
	return max(0, int(n))
}
