import type { ComponentType } from 'preact';
import { allows } from '../api/session.ts';
import { EmptyState } from '../components/empty-state.tsx';
import { Tabs } from '../components/tabs.tsx';
import { path } from '../router/location.ts';
import { ConfigurationView } from './configuration/configuration-view.tsx';
import { InstancesView } from './instances/instances-view.tsx';
import { JobsView } from './jobs/jobs-view.tsx';
import { TypeEditor } from './types/type-editor.tsx';
import { TypesView } from './types/types-view.tsx';
import './data.css';

interface View {
  readonly path: string;
  /** Its tab; without one it is reached by links. */
  readonly tab?: string;
  /** The tab that it belongs to. */
  readonly below?: string;
  readonly scopes: readonly string[];
  readonly Content: ComponentType;
}

const types = ['schema.schema_read', 'schema.schema_manage'];
const instances = ['schema.custominstance_read', 'schema.custominstance_manage'];
const views: readonly View[] = [
  { path: 'data/types', tab: 'Custom entities', scopes: [...types, ...instances], Content: TypesView },
  { path: 'data/type', below: 'data/types', scopes: instances, Content: InstancesView },
  { path: 'data/type/edit', below: 'data/types', scopes: types, Content: TypeEditor },
  { path: 'data/type/new', below: 'data/types', scopes: ['schema.schema_manage'], Content: TypeEditor },
  {
    path: 'data/configuration',
    tab: 'Configuration',
    scopes: ['configuration.configuration_view', 'configuration.configuration_manage'],
    Content: ConfigurationView,
  },
  { path: 'data/jobs', tab: 'Jobs', scopes: ['ai.agent_read', 'ai.agent_manage'], Content: JobsView },
];

/** Custom entities, configuration and jobs: what the tenant keeps in the service besides its history. */
export function DataPage() {
  const allowed = views.filter(({ scopes }) => allows(...scopes));
  // Without an address the page may be the first one of a session.
  const isFirst = path.value === 'data' || path.value === '';
  const view = isFirst ? allowed[0] : allowed.find((one) => one.path === path.value);
  const tabs = allowed.flatMap(({ path: place, tab }) => (tab === undefined ? [] : [{ path: place, label: tab }]));
  return (
    <>
      <Tabs label="Data" tabs={tabs} current={view?.below ?? view?.path ?? ''} />
      {view === undefined ? (
        <EmptyState icon="search" title="There is no such page">
          <p>The address is wrong, or your client has no scope for this part of the data.</p>
        </EmptyState>
      ) : (
        <view.Content key={view.path} />
      )}
    </>
  );
}
