# test/others/django.sh
#	  Django's own tests, on its postgresql backend (sourced).
#
# A group is a directory of its tests.  The first difference that a program has which looks
# for "btree" in pg_am is explained there; see also doc/applications.md.
#
#	DJANGO_LABELS="indexes schema"	these groups only

# Those whose statements use tables.  Left out are the templates, forms, pages and commands, and what wants other
# software, such as PostGIS.  One test of time is left out, too.
DJANGO_GROUPS="aggregation aggregation_regress annotations backends basic bulk_create composite_pk constraints
	contenttypes_tests custom_lookups custom_managers custom_pk datatypes dates datetimes db_functions db_typecasts db_utils
	defer delete delete_regress distinct_on_fields expressions expressions_case expressions_window extra_regress
	field_defaults filtered_relation fixtures fixtures_regress force_insert_update foreign_object from_db_value
	generic_relations generic_relations_regress get_earliest_or_latest get_object_or_404 get_or_create indexes inspectdb
	introspection known_related_objects lookup m2m_and_m2o m2m_intermediary m2m_multiple m2m_recursive m2m_regress
	m2m_through m2m_through_regress m2o_recursive many_to_many many_to_one many_to_one_null max_lengths
	migrate_signals migration_test_data_persistence migrations migrations2 model_fields model_indexes
	model_inheritance model_inheritance_regress multiple_database mutually_referential nested_foreign_keys null_fk
	null_fk_ordering null_queries one_to_one or_lookups order_with_respect_to ordering pagination postgres_tests
	prefetch_related proxy_models queries raw_query reserved_names reverse_lookup save_delete_hooks schema
	select_for_update select_related select_related_onetoone select_related_regress serializers string_lookup
	timezones transaction_hooks transactions unmanaged_models update update_only_fields xor_lookups"

django_fetch()
{
	VERSION=5.2.19
	venv django "Django==$VERSION" 'psycopg[binary]==3.2.13' jinja2 numpy Pillow pytz pyyaml tblib tzdata &&
		sdist "Django==$VERSION" ad03d8abc51dbff95ebf34b27123cf0c26a3b62db7ba0cd520783686362533d1 &&
		chmod -R a+rX "$WORK/Django" "$VENV" && cp "$OTHERS/outcomes.py" "$WORK/Django/tests/" || return 1
	# it compares seconds of a parser
	sed -i 's/def test_crafted_xml_performance/def timed_crafted_xml_performance/' "$WORK/Django/tests/serializers/test_deserialization.py"
	DJANGO=$VENV
	VERSION+=${DJANGO_LABELS:+ ($DJANGO_LABELS)}
}

django_run()
{
	local name

	suite_cluster "$1"
	cd "$WORK/Django/tests" || return 1
	# the databases are kept, so that their indexes can be looked at
	OUTCOMES=$OUT/outcomes PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$WORK/Django/tests \
		limited "$DJANGO/bin/python" runtests.py --settings=outcomes --keepdb --parallel=1 --noinput \
		${DJANGO_LABELS:-$DJANGO_GROUPS} >"$OUT/log" 2>&1
	tail -3 "$OUT/log"
	cd "$SRC" || return 1
	# some groups need no second one
	for name in $(sql "SELECT datname FROM pg_database WHERE datname LIKE 'test_django%'"); do
		art_only check_indexes "$name"
	done
	suite_cluster_stop
}
