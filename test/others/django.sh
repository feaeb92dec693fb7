# test/others/django.sh
#	  Django's own tests, on its postgresql backend (sourced).
#
# A group is a directory of its tests.  The first difference that a program has which looks
# for "btree" in pg_am is explained there; see also doc/applications.md.
#
#	DJANGO_LABELS="indexes schema"	these groups only

django_fetch()
{
	VERSION=5.2.19
	venv django "Django==$VERSION" 'psycopg[binary]==3.2.13' jinja2 numpy Pillow pytz pyyaml tblib tzdata &&
		sdist "Django==$VERSION" ad03d8abc51dbff95ebf34b27123cf0c26a3b62db7ba0cd520783686362533d1 &&
		chmod -R a+rX "$WORK/Django" "$VENV" && cp "$OTHERS/outcomes.py" "$WORK/Django/tests/"
	DJANGO=$VENV
}

django_run()
{
	local name

	suite_cluster "$1"
	cd "$WORK/Django/tests" || return 1
	# the databases are kept, so that their indexes can be looked at
	OUTCOMES=$OUT/outcomes PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$WORK/Django/tests \
		limited "$DJANGO/bin/python" runtests.py --settings=outcomes --keepdb --parallel=1 --noinput \
		${DJANGO_LABELS:-} >"$OUT/log" 2>&1
	tail -3 "$OUT/log"
	cd "$SRC" || return 1
	for name in test_django test_django_other; do
		art_only check_indexes "$name"
	done
	suite_cluster_stop
}
