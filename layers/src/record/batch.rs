//! Answers to many questions in one buffer: no allocation for each of them.
//!
//! [`Batch::fill`] takes questions in order and whatever answers one into a vector: each call of [`crate::Links`] that
//! ends in `_into` does. Answers stand in the order of the questions. A batch that is used again keeps its memory.

/// Lists, one after the other.
///
/// ```
/// use webstrata_layers::Batch;
///
/// let mut batch = Batch::default();
/// let divisors = |&number: &u64, list: &mut Vec<u64>| {
///     *list = (1..=number).filter(|divisor| number % divisor == 0).collect();
///     Ok::<_, std::convert::Infallible>(())
/// };
/// batch.fill(&[6, 1, 7], divisors)?;
/// assert_eq!((batch.len(), batch.get(0), batch.get(2)), (3, &[1, 2, 3, 6][..], &[1, 7][..]));
/// # Ok::<_, std::convert::Infallible>(())
/// ```
#[derive(Clone, Debug)]
pub struct Batch<T> {
    ends: Vec<usize>,
    values: Vec<T>,
    /// The answer that is being made.
    one: Vec<T>,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self { ends: Vec::new(), values: Vec::new(), one: Vec::new() }
    }
}

impl<T> Batch<T> {
    /// Replaces all answers by those to `questions`; `answer` replaces the contents of the vector that it is given.
    ///
    /// # Errors
    /// The first of `answer`; the batch then has the answers before it.
    pub fn fill<Q, E>(
        &mut self,
        questions: &[Q],
        mut answer: impl FnMut(&Q, &mut Vec<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.ends.clear();
        self.values.clear();
        for question in questions {
            answer(question, &mut self.one)?;
            self.values.append(&mut self.one);
            self.ends.push(self.values.len());
        }
        Ok(())
    }

    /// Adds the answer to one more question.
    pub fn push(&mut self, answer: &[T])
    where
        T: Clone,
    {
        self.values.extend_from_slice(answer);
        self.ends.push(self.values.len());
    }

    /// The values of all answers, one after the other.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// As [`Batch::values`], without the batch.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }

    /// Number of answers.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether nothing was asked.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The answer to a question. Panics when there is no such question.
    pub fn get(&self, question: usize) -> &[T] {
        let start = question.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[question]]
    }

    /// The answers, in the order of the questions.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.len()).map(|question| self.get(question))
    }
}
