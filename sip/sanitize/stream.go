package sanitize

import (
	"bytes"
	"errors"
	"strconv"
)

// Errors that end a stream.
var (
	errHeaders = errors.New("too many headers")
	errLine    = errors.New("header line too long")
	errMessage = errors.New("message too long")
	errLength  = errors.New("want exactly one valid Content-Length")
	errFeed    = errors.New("line must end in CRLF")
)

// A scanner finds the messages of a stream, to bound them.
type scanner struct {
	line   []byte // the incomplete line
	lines  int    // number of lines of the header so far
	size   int    // bytes of the message so far
	length int    // Content-Length plus one; 0 before the header was seen
	body   int    // bytes of the body that have not arrived yet

	answers int // number of responses that have begun
}

// isIdle reports whether no message is incomplete.
func (s *scanner) isIdle() bool { return s.lines == 0 && len(s.line) == 0 && s.body == 0 }

// scan reads the next bytes and returns the number of headers that ended in them.
// After an error the stream cannot be read further (RFC 3261 section 18.3).
func (s *scanner) scan(b []byte) (heads int, err error) {
	for len(b) > 0 {
		if s.body > 0 {
			n := min(s.body, len(b))
			s.body -= n
			b = b[n:]
			continue
		}
		end := bytes.IndexByte(b, '\n') + 1
		part := b[:end]
		if end == 0 {
			part = b
		}
		if len(s.line)+len(part) > maxLine {
			return heads, errLine
		}
		if s.size += len(part); s.size > maxMessage {
			return heads, errMessage
		}
		s.line, b = append(s.line, part...), b[len(part):]
		if end == 0 {
			return heads, nil
		}
		line, strict := bytes.CutSuffix(s.line, []byte("\r\n"))
		if !strict {
			return heads, errFeed
		}
		s.line = s.line[:0]
		switch complete, err := s.scanLine(line); {
		case err != nil:
			return heads, err
		case complete:
			heads++
		}
	}
	return heads, nil
}

// scanLine reads one line. complete reports that it ended a header.
func (s *scanner) scanLine(line []byte) (complete bool, err error) {
	switch {
	case len(line) == 0 && s.lines == 0: // an empty line between two messages
		s.size = 0
		return false, nil
	case len(line) == 0:
		if s.length == 0 {
			return false, errLength
		}
		if s.size+s.length-1 > maxMessage {
			return false, errMessage
		}
		*s = scanner{line: s.line, body: s.length - 1, answers: s.answers}
		return true, nil
	}
	if s.lines++; s.lines > maxHeaders+1 {
		return false, errHeaders
	}
	if s.lines == 1 && bytes.HasPrefix(line, []byte("SIP/2.0 ")) {
		s.answers++
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	if canonical(string(bytes.TrimSpace(name))) != "content-length" || s.lines == 1 {
		return false, nil
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 31)
	if err != nil || s.length != 0 {
		return false, errLength
	}
	s.length = int(n) + 1
	return false, nil
}
