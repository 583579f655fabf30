import type { ComponentType } from 'preact';
import { allows } from '../api/session.ts';
import { EmptyState } from '../components/empty-state.tsx';
import { Tabs } from '../components/tabs.tsx';
import { path } from '../router/location.ts';
import { AgentEditor } from './agents/agent-editor.tsx';
import { AgentView } from './agents/agent-view.tsx';
import { AgentsView } from './agents/agents-view.tsx';
import { ChatView } from './chat/chat-view.tsx';
import { CompletionsView } from './completions/completions-view.tsx';
import { RequestsView } from './logs/requests-view.tsx';
import { SessionsView } from './logs/sessions-view.tsx';
import { ModelsView } from './models-view.tsx';
import './desk.css';

interface View {
  readonly path: string;
  /** Its tab; without one it is reached by links. */
  readonly tab?: string;
  /** The tab that it belongs to. */
  readonly below?: string;
  readonly scopes: readonly string[];
  readonly Content: ComponentType;
}

const reading = ['ai.agent_read', 'ai.agent_manage'];
const views: readonly View[] = [
  { path: 'desk/agents', tab: 'Agents', scopes: reading, Content: AgentsView },
  { path: 'desk/agent', below: 'desk/agents', scopes: reading, Content: AgentView },
  { path: 'desk/agent/edit', below: 'desk/agents', scopes: ['ai.agent_manage'], Content: AgentEditor },
  { path: 'desk/agent/new', below: 'desk/agents', scopes: ['ai.agent_manage'], Content: AgentEditor },
  { path: 'desk/chat', tab: 'Chat', scopes: ['ai.agentexecution_manage'], Content: ChatView },
  { path: 'desk/sessions', tab: 'Sessions', scopes: reading, Content: SessionsView },
  { path: 'desk/requests', tab: 'Requests', scopes: reading, Content: RequestsView },
  { path: 'desk/completions', tab: 'Completions', scopes: ['ai.completion_manage'], Content: CompletionsView },
  { path: 'desk/models', tab: 'Models', scopes: reading, Content: ModelsView },
];

/** Agents, chats with them, what became of the chats, completions and models. */
export function DeskPage() {
  const allowed = views.filter(({ scopes }) => allows(...scopes));
  // Without an address the page may be the first one of a session.
  const isFirst = path.value === 'desk' || path.value === '';
  const view = isFirst ? allowed[0] : allowed.find((one) => one.path === path.value);
  const tabs = allowed.flatMap(({ path: place, tab }) => (tab === undefined ? [] : [{ path: place, label: tab }]));
  return (
    <>
      <Tabs label="AI desk" tabs={tabs} current={view?.below ?? view?.path ?? ''} />
      {view === undefined ? (
        <EmptyState icon="search" title="There is no such page">
          <p>The address is wrong, or your client has no scope for this part of the AI desk.</p>
        </EmptyState>
      ) : (
        <view.Content key={view.path} />
      )}
    </>
  );
}
