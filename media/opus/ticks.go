package opus

import "github.com/parley-voice/parley/media/jitter"

// block is the duration of the shortest Opus frame, 2.5 ms, in ticks of 8 kHz. All frame durations are multiples of
// block.
const block = jitter.ClockRate / 400

// Ticks returns the duration of a packet in ticks of 8 kHz (RFC 6716 section 3). It returns 0 if the packet is
// invalid or longer than 60 ms.
func Ticks(packet []byte) int {
	if len(packet) == 0 {
		return 0
	}
	var frames int
	switch packet[0] & 3 {
	case 0:
		frames = 1
	case 1, 2:
		frames = 2
	default:
		if len(packet) < 2 {
			return 0
		}
		frames = int(packet[1] & 63)
	}
	n := frames * frameTicks(packet[0]>>3)
	if n > jitter.MaxPayload {
		return 0
	}
	return n
}

// frameTicks returns the duration of a frame with a configuration number (RFC 6716 table 2).
func frameTicks(config byte) int {
	switch {
	case config < 12: // SILK: 10, 20, 40, 60 ms
		return [4]int{4 * block, 8 * block, 16 * block, 24 * block}[config%4]
	case config < 16: // hybrid: 10, 20 ms
		return [2]int{4 * block, 8 * block}[config%2]
	default: // CELT: 2.5, 5, 10, 20 ms
		return block << (config % 4)
	}
}
