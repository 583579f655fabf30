import { useLayoutEffect, useRef } from 'preact/hooks';
import { FormField } from '../components/form-field.tsx';

/** Characters, as the service counts them. */
const maxName = 200;

interface ViewNameFieldProps {
  readonly name: string;
  readonly onName: (name: string) => void;
}

export function ViewNameField({ name, onName }: ViewNameFieldProps) {
  const input = useRef<HTMLInputElement>(null);
  // In the same turn as it is drawn: a key that is pressed between the two would be lost.
  useLayoutEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);
  return (
    <FormField label="Name">
      {(control) => (
        <input
          {...control}
          ref={input}
          // A dialog gives the focus to its first button when it opens, unless something in it asks for it.
          autofocus
          dir="auto"
          autocomplete="off"
          maxLength={maxName}
          value={name}
          onInput={(event) => onName(event.currentTarget.value)}
        />
      )}
    </FormField>
  );
}
