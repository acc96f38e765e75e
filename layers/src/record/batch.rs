//! The answers to many questions in one buffer, without an allocation for each answer.
//!
//! [`Batch::fill`] takes questions in order and a function that writes an answer into a vector, such as the calls of
//! [`crate::Links`] that end in `_into`. Answers are in the order of the questions. A batch that is used again keeps
//! its memory.

/// A sequence of lists.
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
    /// The answer in progress.
    one: Vec<T>,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self { ends: Vec::new(), values: Vec::new(), one: Vec::new() }
    }
}

impl<T> Batch<T> {
    /// Replaces all answers by the answers to `questions`. `answer` must replace the contents of the vector that it
    /// gets.
    ///
    /// # Errors
    /// The first error of `answer`. The batch then has the answers before the error.
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

    /// Appends the answer to one more question.
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

    /// As [`Batch::values`], and consumes the batch.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }

    /// The number of answers.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no answers.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The answer to the question with this index. Panics if there is no such question.
    pub fn get(&self, question: usize) -> &[T] {
        let start = question.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[question]]
    }

    /// The answers, in the order of the questions.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.len()).map(|question| self.get(question))
    }
}
