# test/others/tester.tcl
#	  Stands in for the tester.tcl of SQLite's tests: sends their SQL to PostgreSQL by psql.
#
# The answers of two runs are compared with each other; "ok" says that an answer is SQLite's as
# well, which it seldom can be where types differ.  What is SQLite's own (its pragmas, its
# virtual machine, files) does nothing here.  Environment: PSQL, OUT, GROUP, and the
# connection.

set group $env(GROUP)
set result [open $env(OUT)/results/$group.out w]
set outcomes [open $env(OUT)/outcomes a]
set testprefix $group
set mark "<end>"

proc session_start {} {
	global psql mark
	set psql [open "|$::env(PSQL) -XAtq -v VERBOSITY=sqlstate -P null= 2>@1" r+]
	fconfigure $psql -buffering line -translation lf -encoding utf-8
	sql "DROP SCHEMA IF EXISTS lite CASCADE; CREATE SCHEMA lite; SET search_path = lite, public; SET statement_timeout = '20s';
		SET client_min_messages = error;"
}

# SQL, and psql's lines up to the mark
proc sql {text} {
	global psql mark
	puts $psql "$text\n;\n\\echo $mark"
	flush $psql
	set lines {}
	while {[gets $psql line] >= 0 && $line ne $mark} {
		lappend lines $line
	}
	return $lines
}

# A column without a type is an int here, and "==" is "=".
proc dialect {text} {
	regsub -all {==} $text = text
	regsub -all -nocase {\mCOLLATE\s+(nocase|binary|rtrim)\M} $text {} text
	regsub -all -nocase {\mWITHOUT\s+ROWID\M} $text {} text
	regsub -all -nocase {\mBLOB\M} $text bytea text
	regsub -all -nocase {\mPRAGMA\s[^;]*;?} $text {} text
	regsub -all {`} $text {"} text
	set done {}
	while {[regexp -nocase -indices {\mCREATE\s+(?:TEMP\s+|TEMPORARY\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?[\w."]+\s*\(} $text at]} {
		append done [string range $text 0 [lindex $at 1]]
		set text [string range $text [expr {[lindex $at 1] + 1}] end]
		# to the end of the list of columns
		set depth 1
		set column {}
		for {set i 0} {$i < [string length $text] && $depth > 0} {incr i} {
			set c [string index $text $i]
			if {$c eq "("} {incr depth}
			if {$c eq ")"} {incr depth -1}
			if {$depth == 0 || ($depth == 1 && $c eq ",")} {
				append done [typed $column] $c
				set column {}
			} else {
				append column $c
			}
		}
		set text [string range $text $i end]
	}
	return $done$text
}

proc typed {column} {
	regsub -all -- {--[^\n]*} $column {} column
	if {[regexp -nocase {^\s*(PRIMARY|UNIQUE|CHECK|FOREIGN|CONSTRAINT)\M} $column]} {return $column}
	regsub -nocase {^(\s*[\w"]+)(\s*$|\s+(PRIMARY|UNIQUE|NOT|NULL|DEFAULT|CHECK|REFERENCES|GENERATED)\M)} $column {\1 int\2} column
	return $column
}

# {0 values} or {1 SQLSTATE}, and the lines into the result
proc ask {text} {
	global result
	set lines [sql [dialect $text]]
	set values {}
	foreach line $lines {
		if {[regexp {^ERROR:\s+(\w+)} $line all state]} {
			puts $result "ERROR $state"
			# a block that failed is over
			sql "ROLLBACK"
			return [list 1 $state]
		}
		foreach value [split $line |] {lappend values $value}
	}
	# without ORDER BY the order is the plan's
	if {![regexp -nocase {ORDER\s+BY} $text] || [regexp -nocase {random\(} $text]} {set lines [lsort $lines]}
	puts $result [join $lines \n]
	return [list 0 $values]
}

proc execsql {text {db db}} {
	foreach {failed values} [ask [uplevel 1 [list subst -nobackslashes -nocommands $text]]] {}
	return [expr {$failed ? "error" : $values}]
}
proc catchsql {text {db db}} {
	foreach {failed values} [ask [uplevel 1 [list subst -nobackslashes -nocommands $text]]] {}
	return [list $failed $values]
}
proc execsql2 {text {db db}} {uplevel 1 [list execsql $text]}

proc do_test {name script {wanted {}}} {
	global result outcomes group
	puts $result "-- $name"
	if {[catch {uplevel 1 $script} got]} {set got "error: $got"}
	set ok [expr {[string trim [join $got]] eq [string trim [join $wanted]] ? "ok" : "failed"}]
	puts $outcomes "$ok $group [string map {{ } _} $name]"
}
proc full {name} {
	expr {[string match "[string trim $::testprefix]*" $name] || ![string is digit [string index $name 0]] ? $name : "$::testprefix-$name"}
}
proc do_execsql_test {args} {
	if {[lindex $args 0] eq "-db"} {set args [lrange $args 2 end]}
	foreach {name text wanted} $args {}
	uplevel 1 [list do_test [full $name] [list execsql $text] $wanted]
}
proc do_catchsql_test {name text wanted} {uplevel 1 [list do_test [full $name] [list catchsql $text] $wanted]}
proc db {command args} {
	if {$command in {eval one exists}} {
		set values [uplevel 1 [list execsql [lindex $args 0]]]
		return [expr {$command eq "one" ? [lindex $values 0] : $values}]
	}
	if {$command eq "transaction"} {uplevel 1 [lindex $args end]}
	return {}
}
proc ifcapable {expression code {else {}} {other {}}} {uplevel 1 $code}
proc capable {expression} {return 1}
proc reset_db {} {global psql; catch {close $psql}; session_start}
proc finish_test {} {
	global psql result outcomes
	close $result
	close $outcomes
	catch {close $psql}
	exit 0
}
# what is SQLite's own
proc unknown {args} {return {}}
proc exit_if_over {} {}
session_start
