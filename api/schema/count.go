package schema

import "fmt"

// Limits of a body besides its size in bytes.
const (
	maxDepth   = 64        // levels of nested arrays and objects
	maxValues  = 1_000_000 // values of any kind, not counting member names
	maxMembers = 10_000    // members of one object
)

// A counter applies these limits while a body is read, without storing the body. Its counts of
// invalid JSON mean nothing but are bounded.
type counter struct {
	at      int // bytes counted so far
	values  int
	depth   int
	members [maxDepth + 1]int // number of commas in the object at each depth; -1 for an array

	quoted, escaped, fresh bool // position: inside a string, after a backslash, after an opening bracket
}

// An excess is an exceeded limit.
type excess struct {
	at   int
	deep bool // the nesting was exceeded; otherwise a count was
	what string
}

// add counts the next bytes. It returns nil within the limits.
func (c *counter) add(chunk []byte) *excess {
	for i, b := range chunk {
		switch {
		case c.escaped:
			c.escaped = false
			continue
		case c.quoted:
			c.escaped, c.quoted = b == '\\', b != '"'
			continue
		case b == ' ' || b == '\n' || b == '\t' || b == '\r':
			continue
		}
		if c.fresh && b != ']' && b != '}' {
			c.values++ // the first value of the object or list
		}
		c.fresh = false
		if over := c.punctuation(b, c.at+i); over != nil {
			return over
		}
	}
	c.at += len(chunk)
	return nil
}

func (c *counter) punctuation(b byte, at int) *excess {
	switch b {
	case '"':
		c.quoted = true
	case '{', '[':
		if c.depth++; c.depth > maxDepth {
			return &excess{at, true, fmt.Sprintf("nested deeper than %d levels", maxDepth)}
		}
		c.fresh, c.members[c.depth] = true, 0
		if b == '[' {
			c.members[c.depth] = -1
		}
	case '}', ']':
		c.depth = max(c.depth-1, 0)
	case ',':
		if c.values++; c.values >= maxValues { // the outermost value adds one
			return &excess{at, false, fmt.Sprintf("the body has more than %d values", maxValues)}
		}
		if c.members[c.depth] >= 0 {
			if c.members[c.depth]++; c.members[c.depth] >= maxMembers {
				return &excess{at, false, fmt.Sprintf("an object has more than %d members", maxMembers)}
			}
		}
	}
	return nil
}
