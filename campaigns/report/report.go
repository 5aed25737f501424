// Package report writes the results of an import's rows as a CSV or XLSX file.
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

// MaxVariables is the number of variables with a column. Further ones are omitted.
const MaxVariables = 1000

// dncMatch is the status of a row on a do-not-call list.
const dncMatch = "dnc_match"

// A Table receives the lines of a report.
type Table interface {
	Write(cells []string) error
	// Close completes the table. Until then, the lines may be in a buffer.
	Close() error
}

// New returns a table in a format.
func New(format string, w io.Writer) (Table, error) {
	if format == XLSX {
		return newXLSX(w)
	}
	_, err := io.WriteString(w, "\ufeff") // makes spreadsheet programs read the file as UTF-8
	return &csvTable{csv.NewWriter(w)}, err
}

// Header returns the first line, with a column for each variable.
func Header(variables []string) []string {
	all := []string{
		"row", "phone", "phone_normalized", "name", "timezone", "status", "codes", "messages", "contact_state", "registry",
	}
	for _, name := range variables {
		all = append(all, "var:"+name)
	}
	return all
}

// Cells returns the line of a row. registry is the do-not-call list that has the row's number; empty for none.
func Cells(l store.ReportRow, registry string, variables []string) []string {
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
		strconv.Itoa(l.Row), l.Phone, l.Number, l.Name, l.Timezone, status, strings.Join(codes, " "), strings.Join(messages, "; "),
		string(l.State), registry,
	}
	for _, name := range variables {
		all = append(all, l.Variables[name])
	}
	for i, c := range all {
		all[i] = guardCell(c)
	}
	return all
}

// guardCell keeps a spreadsheet program from reading a cell as a formula. A plus followed
// by digits is a phone number.
func guardCell(c string) string {
	if c == "" || !strings.ContainsRune("=+-@\t\r", rune(c[0])) {
		return c
	}
	if c[0] == '+' && len(c) > 1 && strings.Trim(c[1:], "0123456789") == "" {
		return c
	}
	return "'" + c
}

type csvTable struct{ *csv.Writer }

// Close implements Table.
func (t *csvTable) Close() error {
	t.Flush()
	return t.Error()
}

// An xlsxTable is an XLSX table. All cells are text, including phone numbers.
type xlsxTable struct {
	to     io.Writer
	file   *excelize.File
	stream *excelize.StreamWriter
	line   int
}

func newXLSX(w io.Writer) (*xlsxTable, error) {
	s := &xlsxTable{to: w, file: excelize.NewFile()}
	var err error
	if s.stream, err = s.file.NewStreamWriter("Sheet1"); err != nil {
		return nil, fmt.Errorf("spreadsheet: %w", err)
	}
	return s, nil
}

// maxCell is the limit of a spreadsheet cell, in UTF-16 units.
const maxCell = 32767

// Write implements Table.
func (s *xlsxTable) Write(cells []string) error {
	s.line++
	values := make([]any, len(cells))
	for i, c := range cells {
		if len(c) > maxCell { // a text has at least as many bytes as UTF-16 units
			c = strings.ToValidUTF8(c[:maxCell], "")
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
func (s *xlsxTable) Close() error {
	err := s.stream.Flush()
	if err == nil {
		err = s.file.Write(s.to)
	}
	if e := s.file.Close(); err == nil { // deletes its temporary files
		err = e
	}
	if err != nil {
		return fmt.Errorf("spreadsheet: %w", err)
	}
	return nil
}
