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

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control"
)

// Parts of a multipart creation.
const (
	campaignPart = "campaign" // JSON object without planned_calls
	rowsPart     = "rows"     // file with the rows
)

// uploadTime limits the upload of a list.
const uploadTime = 2 * time.Minute

// order parses a creation: JSON, or a multipart form with JSON and a file. done releases the
// file.
func (c *Campaigns) order(w http.ResponseWriter, r *http.Request, orgID string) (
	o service.CreateRequest, fingerprint []byte, done func(), err error,
) {
	done = func() {}
	// A list may take longer than other bodies. If the connection supports no deadline, the default
	// applies.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime))
	if kind, _, bad := mime.ParseMediaType(r.Header.Get("Content-Type")); bad == nil && kind == "multipart/form-data" {
		return c.upload(w, r, orgID)
	}
	body, err := schema.ReadUpTo(w, r, schema.MaxCampaign)
	if err != nil {
		return o, nil, done, err
	}
	o, err = c.Schemas.CampaignOrder(body)
	return o, body.Fingerprint(), done, err
}

func (c *Campaigns) upload(
	w http.ResponseWriter,
	r *http.Request,
	orgID string,
) (o service.CreateRequest, fingerprint []byte, done func(), err error) {
	done = func() {}
	r.Body = http.MaxBytesReader(w, r.Body, schema.MaxFile+schema.MaxBody)
	form, err := r.MultipartReader()
	if err != nil {
		return o, nil, done, badForm("body", "the form could not be read: "+err.Error())
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
		return o, nil, done, badForm("planned_calls", "send rows in the file or in planned_calls, not both")
	}
	if part, err = next(form, rowsPart); err != nil {
		return o, nil, done, err
	}
	f, sum, remove, err := spool(part)
	if err != nil {
		return o, nil, done, cut(err)
	}
	leave, err := c.ReadList(orgID)
	if err != nil {
		remove()
		return o, nil, done, err
	}
	o.File = f
	return o, append(body.Fingerprint(), sum...), func() { leave(); remove() }, nil
}

// ReadList reserves memory for a list until done is called, or rejects the request.
func (c *Campaigns) ReadList(orgID string) (done func(), err error) {
	if c.Budget == nil {
		return func() {}, nil
	}
	return c.Budget.List(orgID)
}

// next returns the next part of a form, which must have this name.
func next(form *multipart.Reader, name string) (*multipart.Part, error) {
	part, err := form.NextPart()
	if errors.Is(err, io.EOF) || err == nil && part.FormName() != name {
		return nil, badForm(name, fmt.Sprintf("the form must have two parts: first %s (JSON), then %s (file)", campaignPart, rowsPart))
	}
	if err != nil {
		return nil, cut(err)
	}
	return part, nil
}

// spool stores the file on disk, because spreadsheets are read from their end.
func spool(part io.Reader) (f *service.File, sum []byte, done func(), err error) {
	tmp, err := os.CreateTemp("", "parley-rows-*")
	if err != nil {
		return nil, nil, func() {}, err
	}
	done = func() { _ = errors.Join(tmp.Close(), os.Remove(tmp.Name())) } // the file is temporary
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(tmp, h), part)
	if err != nil {
		done()
		return nil, nil, func() {}, err
	}
	return &service.File{ReaderAt: tmp, Size: n}, h.Sum(nil), done, nil
}

func cut(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return control.Refuse(
			control.CodeRequestTooLarge,
			fmt.Sprintf("the file exceeds %d MiB, or the preceding parts exceed %d MiB", schema.MaxFile>>20, schema.MaxBody>>20),
		)
	}
	if refusal, ok := errors.AsType[*control.Error](err); ok {
		return refusal
	}
	if _, ok := errors.AsType[*os.PathError](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &response.PlainError{Status: http.StatusBadRequest, Message: "the body could not be read"}
}

func badForm(at, msg string) error {
	return &response.InvalidError{Issues: []response.Issue{{Type: "value_error", Loc: []any{"body", at}, Msg: msg, Input: map[string]any{}}}}
}

// unreadable returns the error of a file that is not a list of rows.
func unreadable(err error) error {
	if errors.Is(err, contactfile.ErrFile) {
		return badForm(rowsPart, err.Error())
	}
	return err
}
