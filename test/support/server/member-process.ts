import { openEmbeddedDatabase } from '../../../src/postgres/embedded/open-embedded-database.ts';

// Opens the database of a data folder, prints its URL, and leaves it when stdin ends.
const [dataDir = ''] = process.argv.slice(2);
try {
  const database = await openEmbeddedDatabase({ dataDir, log: console.error, durability: 'none' });
  console.log(database.url);
  process.stdin.on('end', () => database.release()).resume();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
