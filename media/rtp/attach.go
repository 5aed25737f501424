package rtp

import "fmt"

// attach has the clock call the session and read its sockets, until detach.
func (s *Session) attach() error {
	deaf, err := s.transport.poll.add(s.socket, s)
	if err != nil {
		return err
	}
	deafer, err := s.transport.poll.add(s.control.socket, reports{s})
	if err != nil {
		deaf()
		return fmt.Errorf("reports: %w", err)
	}
	still := s.transport.clock.AddSplit(s, midframe{s})
	s.detach = func() {
		still()
		deaf()
		deafer()
		s.farewell() // the clock owns nothing any more
		s.socket.Close()
		s.control.socket.Close()
	}
	return nil
}
