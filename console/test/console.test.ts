import { afterAll, afterEach, beforeAll, beforeEach, describe, vi } from 'vitest';
import { actorTests } from './pages/actor.ts';
import { agentTests } from './pages/agents.ts';
import { authorizeTests } from './pages/authorize.ts';
import { bringBackTests } from './pages/bring-back.ts';
import { chatTests } from './pages/chat.ts';
import { companyAccountTests } from './pages/company-account.ts';
import { costTests } from './pages/costs.ts';
import { credentialTests } from './pages/credentials.ts';
import { dataTests } from './pages/data.ts';
import { documentTests } from './pages/document.ts';
import { entryDetailTests } from './pages/entry-detail.ts';
import { findTests } from './pages/find.ts';
import { guidesTests } from './pages/guides.ts';
import { historyTests } from './pages/history.ts';
import { historyQueryTests } from './pages/history-query.ts';
import { keyboardTests } from './pages/keyboard.ts';
import { layoutTests } from './pages/layout.ts';
import { listTests } from './pages/lists.ts';
import { liveTests } from './pages/live.ts';
import { offlineTests } from './pages/offline.ts';
import { overviewTests } from './pages/overview.ts';
import { proofTests } from './pages/proof.ts';
import { restrictedTests } from './pages/restricted.ts';
import { sessionTests } from './pages/session.ts';
import { subscriptionTests } from './pages/subscriptions.ts';
import { taskTests } from './pages/tasks.ts';
import { viewTests } from './pages/views.ts';
import { whoTests } from './pages/who.ts';
import { type ConsoleUnderTest, startConsole } from './support/console-under-test.ts';

// One browser and one service for all pages: to start them takes longer than most tests.
let started: ConsoleUnderTest;

beforeAll(async () => {
  // Each look goes through four processes, and takes a tenth of the time between two.
  vi.setConfig({ expect: { poll: { timeout: 60_000, interval: 200 } } });
  started = await startConsole();
});

// What the first try of a test has left would be in the way of the second: it gets a service of its own.
beforeEach(async ({ task }) => {
  if ((task.result?.retryCount ?? 0) === 0) return;
  await started.end();
  started = await startConsole();
});

afterEach(() => started.leaveWindows());

afterAll(async () => {
  vi.resetConfig();
  await started?.end();
});

describe('signing in', () => sessionTests(() => started));
describe('a company account', () => companyAccountTests(() => started));
describe('programs', () => authorizeTests(() => started));
describe('tasks', () => taskTests(() => started));
describe('History', () => historyTests(() => started));
describe('live', () => liveTests(() => started));
describe('offline', () => offlineTests(() => started));
describe('query', () => historyQueryTests(() => started));
describe('saved views', () => viewTests(() => started));
describe('entry', () => entryDetailTests(() => started));
describe('who exactly', () => whoTests(() => started));
describe('Document', () => documentTests(() => started));
describe('lists of objects', () => listTests(() => started));
describe('bringing back', () => bringBackTests(() => started));
describe('Actor', () => actorTests(() => started));
describe('AI desk', () => {
  agentTests(() => started);
  chatTests(() => started);
  costTests(() => started);
});
describe('Data', () => dataTests(() => started));
describe('Proof', () => proofTests(() => started));
describe('Clients and keys', () => credentialTests(() => started));
describe('Subscriptions', () => subscriptionTests(() => started));
describe('search', () => findTests(() => started));
describe('layout', () => layoutTests(() => started));
describe('keyboard', () => keyboardTests(() => started));
describe('Overview', () => overviewTests(() => started));
describe('a part of the history', () => restrictedTests(() => started));
describe('guides', () => guidesTests(() => started));
