import { Name } from '../components/name.tsx';

/** What something is that was found. */
export function Hint({ text }: { readonly text: string }) {
  if (text === '') return null;
  return (
    <span class="find-hint">
      <Name text={text} />
    </span>
  );
}
