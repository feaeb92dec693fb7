// Writes and reads through the indexes that migration.sql made.
import { randomUUID } from "node:crypto";
import { PrismaPg } from "@prisma/adapter-pg";
import { PrismaClient } from "@prisma/client";

const adapter = new PrismaPg({
  host: process.env.PGHOST, port: Number(process.env.PGPORT),
  user: process.env.PGUSER, database: process.env.PGDATABASE,
});
const prisma = new PrismaClient({ adapter });
const token = randomUUID();
await prisma.order.create({ data: { token, account: 7n } });
const found = await prisma.order.findUnique({ where: { token } });
console.log("found:", found?.account === 7n);
const again = await prisma.order.create({ data: { token, account: 8n } }).catch((e) => e.code);
console.log("duplicate:", again);
await prisma.$disconnect();
