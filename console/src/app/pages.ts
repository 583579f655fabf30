import type { ComponentType } from 'preact';
import { credentialScopes, historyAbilities, historyScopes } from '../api/session.ts';
import type { IconName } from '../components/icon.tsx';
import type { View } from '../components/page.tsx';

/** A page of the console: its title, its address, and who may see it. */
export interface Page {
  /** The first part of its address below the console. */
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** A session with one of these scopes sees the page. */
  readonly scopes: readonly string[];
  /** Whether the navigation leads to it. Other pages are reached by links. */
  readonly inNavigation: boolean;
  /** Fetches the page's code when it is first shown. */
  readonly load: () => Promise<ComponentType>;
  /** The parts of the page that have addresses of their own. */
  readonly views?: () => Promise<readonly View[]>;
}

/** All pages, in the order of the navigation. The first that a session may see is its first page. */
export const pages: readonly Page[] = [
  page('overview', 'Overview', 'overview', {
    scopes: [...historyScopes, 'ai.agent_read', 'ai.agent_manage', 'ai.completion_manage', 'usage.usage_read'],
    load: async () => (await import('../overview/overview-page.tsx')).OverviewPage,
  }),
  page('history', 'History', 'history', {
    scopes: historyScopes,
    load: async () => (await import('../history/history-page.tsx')).HistoryPage,
  }),
  page('document', 'Document', 'document', {
    scopes: [historyAbilities.documents],
    load: async () => (await import('../document/document-page.tsx')).DocumentPage,
  }),
  page('people', 'People', 'actor', {
    scopes: [historyAbilities.all],
    load: async () => (await import('../actor/people-page.tsx')).PeoplePage,
  }),
  page('actor', 'Actor', 'actor', {
    scopes: historyScopes,
    inNavigation: false,
    load: async () => (await import('../actor/actor-page.tsx')).ActorPage,
  }),
  page('subscriptions', 'Subscriptions', 'send', {
    scopes: ['changelog.subscription_read', 'changelog.subscription_manage'],
    load: async () => (await import('../subscriptions/subscriptions-page.tsx')).SubscriptionsPage,
  }),
  page('connect', 'Connect', 'link', {
    scopes: historyScopes,
    load: async () => (await import('../connect/connect-page.tsx')).ConnectPage,
  }),
  page('desk', 'AI desk', 'agent', {
    scopes: [
      ...['ai.agent_read', 'ai.agent_manage', 'ai.agentexecution_manage', 'ai.completion_manage'],
      ...['usage.usage_read', 'usage.budget_manage'],
    ],
    load: async () => (await import('../desk/desk-page.tsx')).DeskPage,
    views: async () => (await import('../desk/desk-page.tsx')).deskViews,
  }),
  page('data', 'Data', 'data', {
    scopes: [
      ...['schema.schema_read', 'schema.schema_manage'],
      ...['schema.custominstance_read', 'schema.custominstance_manage'],
      ...['configuration.configuration_view', 'configuration.configuration_manage'],
      ...['ai.agent_read', 'ai.agent_manage', ...historyScopes],
    ],
    load: async () => (await import('../data/data-page.tsx')).DataPage,
    views: async () => (await import('../data/data-page.tsx')).dataViews,
  }),
  page('security', 'Security', 'security', {
    scopes: ['changelog.access_read', 'changelog.proof_read', ...credentialScopes],
    load: async () => (await import('../security/security-page.tsx')).SecurityPage,
    views: async () => (await import('../security/security-page.tsx')).securityViews,
  }),
];

type PageParts = Pick<Page, 'scopes' | 'load' | 'views'> & { readonly inNavigation?: boolean };

function page(path: string, title: string, icon: IconName, parts: PageParts): Page {
  return { path, title, icon, inNavigation: true, ...parts };
}
