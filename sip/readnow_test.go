package sip

import "syscall"

// readNow reads a waiting datagram without blocking.
func readNow(fd int, b []byte) (int, error) {
	n, _, err := syscall.Recvfrom(fd, b, syscall.MSG_DONTWAIT)
	return n, err
}
