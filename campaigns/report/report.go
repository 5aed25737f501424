// Package report writes what became of the rows of a list, as a table to be
// opened in a spreadsheet.
package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"

	"github.com/parley-voice/parley/campaigns/store"
)

// Formats of a report.
const (
	CSV  = "csv"
	XLSX = "xlsx"
)

// MostVariables is how many variables a report has columns for. The rest, in
// order of names, is left out.
const MostVariables = 1000

// dncMatch is the status of a row that is on a do-not-call list.
const dncMatch = "dnc_match"

// A Table takes the lines of a report.
type Table interface {
	// Write takes one line.
	Write(cells []string) error
	// Close ends the table. Until then nothing of it is sure to be written.
	Close() error
}

// New begins a table of a format.
func New(format string, w io.Writer) (Table, error) {
	if format == XLSX {
		return newSheet(w)
	}
	_, err := io.WriteString(w, "\ufeff") // spreadsheets take it for UTF-8 then
	return &text{csv.NewWriter(w)}, err
}

// Header is the first line, with a column for each of some variables.
func Header(variables []string) []string {
	all := []string{
		"row", "phone", "phone_normalized", "name", "timezone", "status", "codes", "messages", "contact_state", "registry",
	}
	for _, name := range variables {
		all = append(all, "var:"+name)
	}
	return all
}

// Cells is the line of a row. Registry is the do-not-call list that it is on,
// empty for none.
func Cells(l store.Line, registry string, variables []string) []string {
	var codes, messages []string
	for _, i := range l.Issues {
		codes = append(codes, i.Code)
		messages = append(messages, i.Message)
	}
	status := string(l.Status)
	if registry != "" {
		status = dncMatch
	}
	all := []string{
		strconv.Itoa(l.Row), l.Phone, l.Number, l.Name, l.Timezone, status, strings.Join(codes, " "), strings.Join(messages, "; "), string(l.State), registry,
	}
	for _, name := range variables {
		all = append(all, l.Variables[name])
	}
	for i, c := range all {
		all[i] = guarded(c)
	}
	return all
}

// guarded keeps a spreadsheet from taking a cell for a formula. A plus and
// digits are a phone number, and none.
func guarded(c string) string {
	if c == "" || !strings.ContainsRune("=+-@\t\r", rune(c[0])) {
		return c
	}
	if c[0] == '+' && len(c) > 1 && strings.Trim(c[1:], "0123456789") == "" {
		return c
	}
	return "'" + c
}

type text struct{ *csv.Writer }

// Close implements Table.
func (t *text) Close() error {
	t.Flush()
	return t.Error()
}

// A sheet is the only one of a workbook. Its cells are text, phones too.
type sheet struct {
	to     io.Writer
	book   *excelize.File
	stream *excelize.StreamWriter
	line   int
}

func newSheet(w io.Writer) (*sheet, error) {
	s := &sheet{to: w, book: excelize.NewFile()}
	var err error
	if s.stream, err = s.book.NewStreamWriter("Sheet1"); err != nil {
		return nil, fmt.Errorf("spreadsheet: %w", err)
	}
	return s, nil
}

// longestCell is what a cell of a spreadsheet holds, in UTF-16 units.
const longestCell = 32767

// Write implements Table.
func (s *sheet) Write(cells []string) error {
	s.line++
	values := make([]any, len(cells))
	for i, c := range cells {
		if len(c) > longestCell { // bytes: never fewer than units
			c = strings.ToValidUTF8(c[:longestCell], "")
		}
		values[i] = c
	}
	at, err := excelize.CoordinatesToCellName(1, s.line)
	if err == nil {
		err = s.stream.SetRow(at, values)
	}
	if err != nil {
		return fmt.Errorf("spreadsheet: %w", err)
	}
	return nil
}

// Close implements Table.
func (s *sheet) Close() error {
	err := s.stream.Flush()
	if err == nil {
		err = s.book.Write(s.to)
	}
	if e := s.book.Close(); err == nil { // its temporary files
		err = e
	}
	if err != nil {
		return fmt.Errorf("spreadsheet: %w", err)
	}
	return nil
}
