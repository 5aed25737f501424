package db

import (
	"slices"
	"strconv"
	"strings"
)

// Column maps a column of a table to a field of T. In Read, %s stands for the column. In Write, %s stands for the
// argument of the statement. An empty Read or Write means "%s".
type Column[T any] struct {
	Name string
	// Type is the SQL type of the argument. It is empty if no statement writes the column.
	Type string
	// Read is the SQL expression that a query selects.
	Read string
	// Write is the SQL expression that is stored. Without %s, the column takes no argument.
	Write string

	value  func(*T) any
	values func([]T) any
	target func(*T) any
}

// Field returns a column that stores a field without conversion.
func Field[T, V any](name, sqlType string, field func(*T) *V) Column[T] {
	return Converted(name, sqlType, field, func(v V) V { return v }, func(v *V) any { return v })
}

// Converted returns a column that stores a field in another form. write returns the argument for a statement; target
// returns the pointer to scan into.
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

// Columns are columns of a table. Build SQL from them once, at start, and not for each statement.
type Columns[T any] []Column[T]

// Only returns the columns with these names.
func (t Columns[T]) Only(names ...string) Columns[T] {
	return t.filter(func(c Column[T]) bool { return slices.Contains(names, c.Name) })
}

// Except returns all columns but those with these names.
func (t Columns[T]) Except(names ...string) Columns[T] {
	return t.filter(func(c Column[T]) bool { return !slices.Contains(names, c.Name) })
}

func (t Columns[T]) filter(keep func(Column[T]) bool) Columns[T] {
	return slices.DeleteFunc(slices.Clone(t), func(c Column[T]) bool { return !keep(c) })
}

// WriteAs returns a copy in which the named column has another Write.
func (t Columns[T]) WriteAs(name, write string) Columns[T] {
	return t.change(name, func(c *Column[T]) { c.Write = write })
}

// ReadAs returns a copy in which the named column has another Read.
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

// Select returns a list of SQL expressions that read the columns, in the order of Targets. alias is the alias of the
// table.
func (t Columns[T]) Select(alias string) string {
	return t.list(Column[T].isRead, func(c Column[T], _ int) string { return format(c.Read, alias+"."+c.Name) })
}

// Targets returns the pointers into which the columns of a row are scanned.
func (t Columns[T]) Targets(row *T) []any {
	return t.values(Column[T].isRead, func(c *Column[T]) any { return c.target(row) })
}

// Args returns the arguments that write one row.
func (t Columns[T]) Args(row *T) []any {
	return t.values(Column[T].hasArg, func(c *Column[T]) any { return c.value(row) })
}

// ArrayArgs returns the arguments that write several rows: one array for each column.
func (t Columns[T]) ArrayArgs(rows []T) []any {
	return t.values(Column[T].hasArg, func(c *Column[T]) any { return c.values(rows) })
}

func (t Columns[T]) values(keep func(Column[T]) bool, value func(*Column[T]) any) []any {
	all := make([]any, 0, len(t)+8) // room for arguments that the caller appends
	for n := range t {
		if keep(t[n]) {
			all = append(all, value(&t[n]))
		}
	}
	return all
}

// ArgCount returns the number of arguments that Args returns.
func (t Columns[T]) ArgCount() int { return len(t.filter(Column[T].hasArg)) }

// ArrayParams returns the SQL parameters for ArrayArgs, for use in unnest. They are numbered from $first.
func (t Columns[T]) ArrayParams(first int) string {
	return t.list(Column[T].hasArg, func(c Column[T], n int) string { return param(first+n, c.Type) + "[]" })
}

// ArgNames returns the names of the columns that take an argument, for the result columns of unnest.
func (t Columns[T]) ArgNames() string {
	return t.list(Column[T].hasArg, func(c Column[T], _ int) string { return c.Name })
}

// Insert returns an INSERT statement for one row. Its parameters take the values of Args, in order, and are numbered
// from $first. A FROM clause may follow.
func (t Columns[T]) Insert(table string, first int) string {
	return t.insert(table, func(c Column[T], n int) string { return param(first+n, c.Type) })
}

// InsertRows returns an INSERT statement that reads rows with the columns ArgNames. A FROM clause must follow.
func (t Columns[T]) InsertRows(table string) string {
	return t.insert(table, func(c Column[T], _ int) string { return c.Name })
}

// Set returns the assignments of an UPDATE statement. Its parameters take the values of Args, in order, and are
// numbered from $first.
func (t Columns[T]) Set(first int) string {
	return t.write(" = ", func(c Column[T], n int) string { return param(first+n, c.Type) })
}

// SetFrom returns the assignments of an UPDATE statement that reads rows with the columns ArgNames. These rows have
// the given alias.
func (t Columns[T]) SetFrom(alias string) string {
	return t.write(" = ", func(c Column[T], _ int) string { return alias + "." + c.Name })
}

func (t Columns[T]) insert(table string, arg func(c Column[T], n int) string) string {
	names := t.list(Column[T].isWritten, func(c Column[T], _ int) string { return c.Name })
	return "INSERT INTO " + table + " (" + names + ") SELECT " + t.write("", arg)
}

// write returns the expressions that are stored. If assign is not empty, the name of each column and assign precede
// its expression.
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

// list joins the parts of some columns. The callback of selects the columns; n is the index of a column among them.
func (t Columns[T]) list(of func(Column[T]) bool, part func(c Column[T], n int) string) string {
	var parts []string
	for _, c := range t {
		if of(c) {
			parts = append(parts, part(c, len(parts)))
		}
	}
	return strings.Join(parts, ", ")
}

// WriteOnly returns the column without its Read, so that queries skip it.
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
