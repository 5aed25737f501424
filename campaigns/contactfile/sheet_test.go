package contactfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
)

// zipParts returns a spreadsheet of parts: alternating names and texts.
func zipParts(tb testing.TB, parts ...string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		w, err := z.Create(parts[i])
		if err == nil {
			_, err = w.Write([]byte(parts[i+1]))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// handwrittenSheet returns a small handwritten spreadsheet with extra parts.
func handwrittenSheet(tb testing.TB, shared, rows string, more ...string) []byte {
	tb.Helper()
	return zipParts(tb, append([]string{
		"_rels/.rels", `<Relationships><Relationship Id="rId1" Type="http://x/officeDocument" Target="/xl/book.xml"/></Relationships>`,
		"xl/book.xml", `<workbook><sheets><sheet name="B" sheetId="7" r:id="rId9"/><sheet name="A" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/book.xml.rels", `<Relationships><Relationship Id="rId1" Type="http://x/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId9" Type="http://x/worksheet" Target="worksheets/sheet2.xml"/><Relationship Id="rId3" Type="http://x/sharedStrings" Target="sharedStrings.xml"/></Relationships>`,
		"xl/worksheets/sheet1.xml", `<worksheet><sheetData><row><c t="str"><v>wrong</v></c></row></sheetData></worksheet>`,
		"xl/worksheets/sheet2.xml", `<?xml version="1.0"?><worksheet><sheetData>` + rows + `</sheetData></worksheet>`,
		"xl/SharedStrings.xml", `<sst>` + shared + `</sst>`,
	}, more...)...)
}

// TestSheetMatchesExcelize checks that the reader returns the same cells as the library excelize.
func TestSheetMatchesExcelize(t *testing.T) {
	content := sheet(t, [][]any{{"a", "b", "c"}, {1, "x<y", true}, {nil, nil, 2.5}, {"_x0041_", "line\nbreak", "é"}}, func(f *excelize.File) {
		if err := f.SetCellRichText("Sheet1", "A5", []excelize.RichTextRun{{Text: "bold"}, {Text: " and not"}}); err != nil {
			t.Fatal(err)
		}
		if err := f.SetCellFormula("Sheet1", "C6", "=A2"); err != nil {
			t.Fatal(err)
		}
	})
	book, err := excelize.OpenReader(bytes.NewReader(content), excelize.Options{RawCellValue: true})
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close() //nolint:errcheck // in memory
	want, err := book.GetRows("Sheet1")
	if err != nil {
		t.Fatal(err)
	}
	source, err := FromFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range source {
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range r.Cells {
			got = append(got, c.Text)
		}
		for len(got) > len(want[r.Row]) && got[len(got)-1] == "" { // excelize omits empty cells at the end of a row
			got = got[:len(got)-1]
		}
		if fmt.Sprint(got) != fmt.Sprint(want[r.Row]) {
			t.Errorf("row %d: %q, want %q", r.Row, got, want[r.Row])
		}
	}
}

// TestHandwrittenSheet checks that the first sheet of the workbook is read, whatever the name of
// its file, and that positions of rows and cells are optional.
func TestHandwrittenSheet(t *testing.T) {
	content := handwrittenSheet(t, `<si><t>phone</t></si><si><r><t>21255</t></r><r><t>50123</t></r><rPh><t>no</t></rPh></si>`,
		`<row r="1"><c r="A1" t="s"><v>0</v></c><c t="inlineStr"><is><t>na</t><t>me</t></is></c></row><row><c t="s"><v>1</v></c></row>`+
			`<row r="5"><c r="B5" t="str"><f>A1</f><v>Ada</v></c></row>`)
	l, err := checkFile(t, content, options(t, "us"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := summary(l), "1 accepted +12125550123\n4 rejected  formula_value:name phone_missing:phone\n"; got != want {
		t.Errorf("%swant %s", got, want)
	}
}

// TestSheetBombs checks that a file that expands too much is rejected without using much memory.
func TestSheetBombs(t *testing.T) {
	blanks := strings.Repeat(" ", 16<<20)
	var media, many []string
	for i := range 9 {
		media = append(media, fmt.Sprintf("xl/media/x%d.xml", i), blanks)
	}
	for i := range 30_000 {
		many = append(many, fmt.Sprintf("xl/media/%d", i), "")
	}
	long := strings.Repeat("x<>", 1<<20)
	for name, content := range map[string][]byte{
		"media":              handwrittenSheet(t, "", "", media...),
		"many parts":         handwrittenSheet(t, "", "", many...),
		"a long comment":     handwrittenSheet(t, "<!--"+long+"-->", `<row/>`),
		"a long cell":        handwrittenSheet(t, "", `<row><c t="str"><v>`+strings.ReplaceAll(long, "<", "")+`</v></c></row>`),
		"a cell of pieces":   handwrittenSheet(t, "", `<row><c t="inlineStr"><is>`+strings.Repeat("<t>xxxxxxxxxx</t>", 200_000)+`</is></c></row>`),
		"a string of pieces": handwrittenSheet(t, `<si>`+strings.Repeat("<r><t>xxxxxxxxxx</t></r>", 200_000)+`</si>`, ""),
		"many strings":       handwrittenSheet(t, strings.Repeat("<si/>", maxStrings+1), ""),
		"repeated strings": handwrittenSheet(t, "<si><t>phone</t></si><si><t>"+strings.Repeat("y", 10_000)+"</t></si>",
			`<row><c t="s"><v>0</v></c></row>`+strings.Repeat(`<row><c t="s"><v>1</v></c></row>`, 20_000)),
		"a negative string": handwrittenSheet(t, "<si><t>phone</t></si>", `<row><c t="s"><v>-1</v></c></row>`),
		"a far cell":        handwrittenSheet(t, "", `<row><c r="ZZZZ1"/></row>`),
		"a far row":         handwrittenSheet(t, "", `<row r="99999999999"/>`),
		"unordered rows":    handwrittenSheet(t, "", `<row r="2"/><row r="1"/>`),
		"no sheet":          zipParts(t, "xl/workbook.xml", "<workbook/>"),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := checkFile(t, content, options(t, "us")); !errors.Is(err, ErrFile) {
			t.Errorf("%s, %d bytes: %v", name, len(content), err)
		}
		runtime.ReadMemStats(&after)
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 500 {
			t.Errorf("%s, %d bytes: %d MiB were allocated", name, len(content), grown)
		}
	}
}

// TestFarCells checks that a cell far beyond the named columns uses no memory for the cells in between.
func TestFarCells(t *testing.T) {
	const n = 5000
	for value, want := range map[string]int{" ": 0, "1": n} {
		content := handwrittenSheet(t, "", `<row><c t="str"><v>phone</v></c></row>`+strings.Repeat(`<row><c r="XFD1" t="str"><v>`+value+`</v></c></row>`, n))
		source, err := FromFile(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := 0
		for r, err := range source {
			if got++; err != nil || r.Err == nil {
				t.Fatalf("row %d: %v, %v", r.Row, err, r.Err)
			}
		}
		runtime.ReadMemStats(&after)
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; got != want || grown > 100 {
			t.Errorf("%q: %d rows, want %d; %d MiB were allocated", value, got, want, grown)
		}
	}
}
