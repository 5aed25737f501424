package parley

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
)

// A ContactFile is a list of contacts: XLSX, or CSV with column names in the first line.
type ContactFile struct {
	// Content is read while it is sent, and again from the start if the request is repeated. An [os.File] is one.
	Content io.ReaderAt
	// Size is the number of bytes.
	Size int64
}

// A payload is the body of a request, which can be sent several times.
type payload struct {
	kind          string // Content-Type
	before, after []byte // around the file
	file          ContactFile
}

// payload encodes the body.
func (r request) payload() (payload, error) {
	if r.body == nil {
		return payload{}, nil
	}
	text, err := json.Marshal(r.body)
	if err != nil {
		return payload{}, fmt.Errorf("parley: encode the request: %w", err)
	}
	if r.file == nil {
		return payload{kind: "application/json", before: text}, nil
	}
	if r.file.Content == nil {
		return payload{}, errors.New("parley: the file has no content")
	}
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	part := func(name, more, kind string) (io.Writer, error) {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", fmt.Sprintf("form-data; name=%q%s", name, more))
		h.Set("Content-Type", kind)
		return form.CreatePart(h)
	}
	w, err := part("campaign", "", "application/json")
	if err == nil {
		if _, err = w.Write(text); err == nil {
			_, err = part("rows", `; filename="rows"`, "application/octet-stream")
		}
	}
	at := b.Len()
	if err = errors.Join(err, form.Close()); err != nil {
		return payload{}, fmt.Errorf("parley: encode the request: %w", err)
	}
	return payload{form.FormDataContentType(), b.Bytes()[:at], b.Bytes()[at:], *r.file}, nil
}

// open returns the body from its start.
func (p payload) open() (io.ReadCloser, error) {
	parts := []io.Reader{bytes.NewReader(p.before), bytes.NewReader(p.after)}
	if p.file.Content != nil {
		parts = []io.Reader{parts[0], io.NewSectionReader(p.file.Content, 0, p.file.Size), parts[1]}
	}
	return io.NopCloser(io.MultiReader(parts...)), nil
}

// attach sets the body of a request.
func (p payload) attach(h *http.Request) {
	if p.kind == "" {
		return
	}
	h.Header.Set("Content-Type", p.kind)
	h.ContentLength = int64(len(p.before)+len(p.after)) + p.file.Size
	h.GetBody = p.open
	h.Body, _ = p.open() // never fails
}
