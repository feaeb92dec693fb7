# A migration with art indexes, by ActiveRecord, and its schema.rb loaded again.
require "active_record"
require "stringio"

ActiveRecord::Base.establish_connection(
  adapter: "postgresql", host: ENV["PGHOST"], port: ENV["PGPORT"],
  username: ENV["PGUSER"], database: ENV["PGDATABASE"])
ActiveRecord::Migration.verbose = false

class CreateOrders < ActiveRecord::Migration[6.1]
  def change
    create_table :orders do |t|
      t.uuid :token, null: false
      t.bigint :account, null: false
      t.datetime :created_at
      t.index :token, unique: true, using: :art
      t.index [:account, :created_at], using: :art, order: { created_at: :desc }
    end
  end
end

CreateOrders.migrate(:up)
stream = StringIO.new
ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.connection, stream)
puts stream.string.lines.grep(/index/)
CreateOrders.migrate(:down)
eval(stream.string)
ActiveRecord::Base.connection.indexes("orders").sort_by(&:name).each do |i|
  puts "#{i.name} #{i.using} #{i.unique} #{i.columns} #{i.orders}"
end
