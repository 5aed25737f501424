package db

import (
	"slices"
	"strconv"
	"strings"
)

// Column is a column of a table with rows T. In Read and Write, %s is the column and the
// argument of a statement; empty means "%s".
type Column[T any] struct {
	Name string
	// Type is the SQL type of the argument; empty if no statement writes the column.
	Type string
	// Read is the SQL expression that is scanned.
	Read string
	// Write is the SQL expression that is stored. Without %s the column takes no argument.
	Write string

	value  func(*T) any
	values func([]T) any
	target func(*T) any
}

// Field returns a column that holds a field as it is.
func Field[T, V any](name, sqlType string, field func(*T) *V) Column[T] {
	return Converted(name, sqlType, field, func(v V) V { return v }, func(v *V) any { return v })
}

// Converted returns a column that holds a field in another form: write returns the
// argument, target what is scanned into.
func Converted[T, V, A any](name, sqlType string, field func(*T) *V, write func(V) A, target func(*V) any) Column[T] {
	return Column[T]{
		Name: name, Type: sqlType,
		value: func(row *T) any { return write(*field(row)) },
		values: func(rows []T) any {
			all := make([]A, len(rows))
			for n := range rows {
				all[n] = write(*field(&rows[n]))
			}
			return all
		},
		target: func(row *T) any { return target(field(row)) },
	}
}

// Columns are columns of a table. SQL made from them must be made once, not per statement.
type Columns[T any] []Column[T]

// Only returns the named columns.
func (t Columns[T]) Only(names ...string) Columns[T] {
	return t.filter(func(c Column[T]) bool { return slices.Contains(names, c.Name) })
}

// Except returns the other columns.
func (t Columns[T]) Except(names ...string) Columns[T] {
	return t.filter(func(c Column[T]) bool { return !slices.Contains(names, c.Name) })
}

func (t Columns[T]) filter(keep func(Column[T]) bool) Columns[T] {
	return slices.DeleteFunc(slices.Clone(t), func(c Column[T]) bool { return !keep(c) })
}

// WriteAs returns the columns with another Write of one.
func (t Columns[T]) WriteAs(name, write string) Columns[T] {
	return t.change(name, func(c *Column[T]) { c.Write = write })
}

// ReadAs returns the columns with another Read of one.
func (t Columns[T]) ReadAs(name, read string) Columns[T] {
	return t.change(name, func(c *Column[T]) { c.Read = read })
}

func (t Columns[T]) change(name string, do func(*Column[T])) Columns[T] {
	t = slices.Clone(t)
	for n := range t {
		if t[n].Name == name {
			do(&t[n])
		}
	}
	return t
}

// Select returns the expressions that read the columns of the table with this alias, in the order of Targets.
func (t Columns[T]) Select(alias string) string {
	return t.list(Column[T].isRead, func(c Column[T], _ int) string { return format(c.Read, alias+"."+c.Name) })
}

// Targets returns what the columns of a row are scanned into.
func (t Columns[T]) Targets(row *T) []any {
	return t.values(Column[T].isRead, func(c *Column[T]) any { return c.target(row) })
}

// Args returns the arguments of one row.
func (t Columns[T]) Args(row *T) []any {
	return t.values(Column[T].hasArg, func(c *Column[T]) any { return c.value(row) })
}

// ArrayArgs returns the arguments of several rows: an array for each column.
func (t Columns[T]) ArrayArgs(rows []T) []any {
	return t.values(Column[T].hasArg, func(c *Column[T]) any { return c.values(rows) })
}

func (t Columns[T]) values(keep func(Column[T]) bool, value func(*Column[T]) any) []any {
	all := make([]any, 0, len(t)+8) // the caller may append some
	for n := range t {
		if keep(t[n]) {
			all = append(all, value(&t[n]))
		}
	}
	return all
}

// ArgCount returns the number of Args.
func (t Columns[T]) ArgCount() int { return len(t.filter(Column[T].hasArg)) }

// ArrayParams returns the parameters of ArrayArgs, from $first on, for unnest.
func (t Columns[T]) ArrayParams(first int) string {
	return t.list(Column[T].hasArg, func(c Column[T], n int) string { return param(first+n, c.Type) + "[]" })
}

// ArgNames returns the names of the columns with an argument, for the result of unnest.
func (t Columns[T]) ArgNames() string {
	return t.list(Column[T].hasArg, func(c Column[T], _ int) string { return c.Name })
}

// Insert returns the INSERT of one row with the parameters of Args, from $first on. A FROM clause may follow.
func (t Columns[T]) Insert(table string, first int) string {
	return t.insert(table, func(c Column[T], n int) string { return param(first+n, c.Type) })
}

// InsertRows returns the INSERT of rows whose arguments have the names ArgNames. A FROM clause must follow.
func (t Columns[T]) InsertRows(table string) string {
	return t.insert(table, func(c Column[T], _ int) string { return c.Name })
}

// Set returns the assignments of an UPDATE by the parameters of Args, from $first on.
func (t Columns[T]) Set(first int) string {
	return t.write(" = ", func(c Column[T], n int) string { return param(first+n, c.Type) })
}

// SetFrom returns the assignments of an UPDATE from rows with this alias that have the names ArgNames.
func (t Columns[T]) SetFrom(alias string) string {
	return t.write(" = ", func(c Column[T], _ int) string { return alias + "." + c.Name })
}

func (t Columns[T]) insert(table string, arg func(c Column[T], n int) string) string {
	names := t.list(Column[T].isWritten, func(c Column[T], _ int) string { return c.Name })
	return "INSERT INTO " + table + " (" + names + ") SELECT " + t.write("", arg)
}

// write returns the stored expressions; assign follows the name of each column, unless empty.
func (t Columns[T]) write(assign string, arg func(c Column[T], n int) string) string {
	args := 0
	return t.list(Column[T].isWritten, func(c Column[T], _ int) string {
		expression := c.Write
		if c.hasArg() {
			expression = format(c.Write, arg(c, args))
			args++
		}
		if assign == "" {
			return expression
		}
		return c.Name + assign + expression
	})
}

// list joins the parts of some columns; n counts these.
func (t Columns[T]) list(of func(Column[T]) bool, part func(c Column[T], n int) string) string {
	var parts []string
	for _, c := range t {
		if of(c) {
			parts = append(parts, part(c, len(parts)))
		}
	}
	return strings.Join(parts, ", ")
}

// WriteOnly returns the column without its Read.
func (c Column[T]) WriteOnly() Column[T] {
	c.target = nil
	return c
}

func (c Column[T]) isRead() bool    { return c.target != nil }
func (c Column[T]) isWritten() bool { return c.Type != "" }
func (c Column[T]) hasArg() bool {
	return c.isWritten() && (c.Write == "" || strings.Contains(c.Write, "%s"))
}

func param(n int, sqlType string) string { return "$" + strconv.Itoa(n) + "::" + sqlType }

func format(with, what string) string {
	if with == "" {
		return what
	}
	return strings.ReplaceAll(with, "%s", what)
}
