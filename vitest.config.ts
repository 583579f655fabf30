import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/oracle/seed-of-run.ts', 'test/support/server/database-server.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // For what hangs. A test that starts processes takes a minute on a machine that is busy with other work.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 30_000 } },
  },
});
