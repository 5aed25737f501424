package sanitize

import (
	"bytes"
	"strconv"
)

// A ResponseHead is the part of a response read before it is parsed.
type ResponseHead struct {
	Status int
	Line   string // status code and reason
	CallID string // empty if the header is missing or repeated
	Method string // method of the CSeq header; empty if it is missing or repeated
}

// PeekResponse reads a datagram. ok is false if it is not a response.
func PeekResponse(data []byte) (a ResponseHead, ok bool) {
	line, rest, _ := bytes.Cut(data, []byte("\r\n"))
	text, ok := bytes.CutPrefix(line, []byte("SIP/2.0 "))
	if !ok {
		return a, false
	}
	status, _, _ := bytes.Cut(text, []byte(" "))
	a.Status, _ = strconv.Atoi(string(status)) // the parser refuses status 0
	a.Line = Clean(string(text))
	ids, numbers := 0, 0
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if name = bytes.TrimSpace(name); len(name) > len("call-id") {
			continue
		}
		switch canonical(string(name)) {
		case "call-id":
			a.CallID = string(bytes.TrimSpace(value))
			ids++
		case "cseq":
			if f := bytes.Fields(value); len(f) == 2 {
				a.Method = string(f[1])
			}
			numbers++
		}
	}
	if ids > 1 {
		a.CallID = ""
	}
	if numbers > 1 {
		a.Method = ""
	}
	return a, true
}
