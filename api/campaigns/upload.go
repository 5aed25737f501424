package campaigns

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"time"

	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/control"
)

// Parts of a creation with a file.
const (
	campaignPart = "campaign" // the body of a creation with rows, without them
	rowsPart     = "rows"     // the file
)

// uploadTime bounds how long a list may be on its way.
const uploadTime = 2 * time.Minute

// order reads what a creation asks for: JSON, or a form of JSON and a file. Done
// lets go of the file.
func (c *Campaigns) order(w http.ResponseWriter, r *http.Request) (o desk.Order, fingerprint []byte, done func(), err error) {
	done = func() {}
	// A list takes longer than other bodies. Where this cannot be said it is held
	// to their time.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime))
	if kind, _, bad := mime.ParseMediaType(r.Header.Get("Content-Type")); bad == nil && kind == "multipart/form-data" {
		return c.upload(w, r)
	}
	body, err := schema.ReadUpTo(w, r, schema.MaxCampaign)
	if err != nil {
		return o, nil, done, err
	}
	o, err = c.Schemas.CampaignOrder(body)
	return o, body.Fingerprint(), done, err
}

// upload reads a form: the campaign, then the file.
func (c *Campaigns) upload(w http.ResponseWriter, r *http.Request) (o desk.Order, fingerprint []byte, done func(), err error) {
	done = func() {}
	r.Body = http.MaxBytesReader(w, r.Body, schema.MaxFile+schema.MaxBody)
	form, err := r.MultipartReader()
	if err != nil {
		return o, nil, done, badForm("body", "the form cannot be read: "+err.Error())
	}
	part, err := next(form, campaignPart)
	if err != nil {
		return o, nil, done, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, part, schema.MaxBody))
	if err != nil {
		return o, nil, done, cut(err)
	}
	body, err := schema.Parse(text)
	if err != nil {
		return o, nil, done, err
	}
	if o, err = c.Schemas.CampaignOrder(body); err != nil {
		return o, nil, done, err
	}
	if len(o.Rows) > 0 {
		return o, nil, done, badForm("planned_calls", "rows come in the file or in planned_calls, not in both")
	}
	if part, err = next(form, rowsPart); err != nil {
		return o, nil, done, err
	}
	f, sum, done, err := spool(part)
	if err != nil {
		return o, nil, done, cut(err)
	}
	o.File = f
	return o, append(body.Fingerprint(), sum...), done, nil
}

// next is the next part of a form, which has a name.
func next(form *multipart.Reader, name string) (*multipart.Part, error) {
	part, err := form.NextPart()
	if errors.Is(err, io.EOF) || err == nil && part.FormName() != name {
		return nil, badForm(name, fmt.Sprintf("the form has two parts, first %s (JSON), then %s (a file)", campaignPart, rowsPart))
	}
	if err != nil {
		return nil, cut(err)
	}
	return part, nil
}

// spool keeps a file on the disk while it is read, for a spreadsheet is read from
// its end.
func spool(part io.Reader) (f *desk.File, sum []byte, done func(), err error) {
	tmp, err := os.CreateTemp("", "parley-rows-*")
	if err != nil {
		return nil, nil, func() {}, err
	}
	done = func() { _ = errors.Join(tmp.Close(), os.Remove(tmp.Name())) } // nothing is lost with it
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(tmp, h), part)
	if err != nil {
		done()
		return nil, nil, func() {}, err
	}
	return &desk.File{ReaderAt: tmp, Size: n}, h.Sum(nil), done, nil
}

// cut is what is told of a body that ends too early or too late.
func cut(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return control.Refuse(control.CodeRequestTooLarge, fmt.Sprintf("the file is larger than %d MiB, or what stands before it than %d", schema.MaxFile>>20, schema.MaxBody>>20))
	}
	if _, ok := errors.AsType[*os.PathError](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &respond.PlainError{Status: http.StatusBadRequest, Message: "the body could not be read"}
}

func badForm(at, msg string) error {
	return &respond.InvalidError{Issues: []respond.Issue{{Type: "value_error", Loc: []any{"body", at}, Msg: msg, Input: map[string]any{}}}}
}

// unreadable is what is told of a file that is no list of rows.
func unreadable(err error) error {
	if errors.Is(err, rows.ErrFile) {
		return badForm(rowsPart, err.Error())
	}
	return err
}
